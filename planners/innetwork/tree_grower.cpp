#include "planners/innetwork/tree_grower.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace espalier::planners {

RelayResources::RelayResources(const Topology& topology) : backplanes(topology.node_count(), none) {
  for (const Link& link : topology.links()) rates.push_back(link.bandwidth().bytes_per_second);
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const std::int64_t rate = topology.nodes()[v].bandwidth.bytes_per_second;
    if (rate == 0) continue;
    backplanes[v] = static_cast<std::uint32_t>(rates.size());
    rates.push_back(rate);
  }
}

void RelayResources::add_uses(const RelayTree& tree, const Topology& topology, std::vector<std::int64_t>& uses) const {
  const auto use_backplane = [&](NodeId node) {
    if (backplanes[node.index()] != none) ++uses[backplanes[node.index()]];
  };
  for (const RelayHop& hop : tree.hops) {
    use_backplane(topology.link(hop.links.front()).tail);
    for (const LinkId link : hop.links) {
      ++uses[link.index()];
      use_backplane(topology.link(link).head);
    }
  }
}

TreeGrower::TreeGrower(const Topology& topology, const RelayResources& resources, Direction direction)
    : topology_(topology), resources_(resources), direction_(direction) {
  for (const Node& node : topology.nodes()) {
    branches_.push_back(node.is_rank || (direction == Direction::forward ? node.multicast : node.reduction));
  }
}

/// One tree while it grows: a search for cheapest paths from all that has been reached, which goes on behind every rank
/// that it reaches.
class TreeGrower::Growth {
 public:
  Growth(const TreeGrower& grower, NodeId root, std::span<const double> prices)
      : grower_(grower),
        topology_(grower.topology_),
        prices_(prices),
        keys_(topology_.node_count(), {unreached, 0}),
        entering_(topology_.node_count()),
        in_tree_(topology_.node_count(), false) {
    tree_.root = root;
    join(root, 0);
    missing_ = topology_.rank_count() - (topology_.node(root).is_rank ? 1 : 0);
  }

  std::optional<RelayTree> run() {
    while (missing_ > 0) {
      if (frontier_.empty()) return std::nullopt;
      const auto [cost, depth, node] = frontier_.top();
      frontier_.pop();
      if (Key(cost, depth) != keys_[node.index()]) continue;
      if (topology_.node(node).is_rank && !in_tree_[node.index()]) {
        attach(node);
        --missing_;
      } else {
        search_from(node);
      }
    }
    return std::move(tree_);
  }

 private:
  using Key = std::pair<double, std::uint32_t>;  // cost from the tree, links from the root
  using State = std::tuple<double, std::uint32_t, NodeId>;
  static constexpr double unreached = std::numeric_limits<double>::infinity();

  [[nodiscard]] bool forward() const { return grower_.direction_ == Direction::forward; }
  [[nodiscard]] NodeId near_end(LinkId link) const {
    return forward() ? topology_.link(link).tail : topology_.link(link).head;
  }
  [[nodiscard]] NodeId far_end(LinkId link) const {
    return forward() ? topology_.link(link).head : topology_.link(link).tail;
  }

  void join(NodeId node, std::uint32_t depth) {
    in_tree_[node.index()] = true;
    keys_[node.index()] = {0, depth};
    frontier_.emplace(0, depth, node);
  }

  void search_from(NodeId node) {
    if (topology_.node(node).must_not_relay() && node != tree_.root) return;
    const auto [cost, depth] = keys_[node.index()];
    for (const LinkId link : forward() ? topology_.out_links(node) : topology_.in_links(node)) {
      const NodeId next = far_end(link);
      if (in_tree_[next.index()]) continue;
      const std::uint32_t backplane = grower_.resources_.backplanes[next.index()];
      const double step = prices_[link.index()] + (backplane == RelayResources::none ? 0 : prices_[backplane]);
      const Key key(cost + step, depth + 1);
      if (key >= keys_[next.index()]) continue;
      keys_[next.index()] = key;
      entering_[next.index()] = link;
      frontier_.emplace(key.first, key.second, next);
    }
  }

  /// The path to a rank joins the tree, cut into hops at the nodes that may branch.
  void attach(NodeId rank) {
    std::vector<LinkId> path;
    for (NodeId at = rank; !in_tree_[at.index()]; at = near_end(path.back())) path.push_back(entering_[at.index()]);
    std::reverse(path.begin(), path.end());
    RelayHop hop{near_end(path.front()), {}, {}};
    std::uint32_t depth = keys_[hop.parent.index()].second;
    for (const LinkId link : path) {
      hop.links.push_back(link);
      ++depth;
      hop.child = far_end(link);
      if (!grower_.branches_[hop.child.index()]) continue;
      join(hop.child, depth);
      if (!forward()) std::reverse(hop.links.begin(), hop.links.end());
      const NodeId next_parent = hop.child;
      tree_.hops.push_back(std::move(hop));
      hop = {next_parent, {}, {}};
    }
  }

  const TreeGrower& grower_;
  const Topology& topology_;
  std::span<const double> prices_;
  std::vector<Key> keys_;
  std::vector<LinkId> entering_;
  std::vector<bool> in_tree_;
  std::priority_queue<State, std::vector<State>, std::greater<>> frontier_;
  std::size_t missing_ = 0;
  RelayTree tree_;
};

std::optional<RelayTree> TreeGrower::grow(NodeId root, std::span<const double> prices) const {
  std::optional<RelayTree> tree = Growth(*this, root, prices).run();
  if (tree) tree = without_mere_passages(*std::move(tree));
  return tree;
}

/// Switches with one child are passed by a route: a switch that forwards does not wait for whole chunks.
RelayTree TreeGrower::without_mere_passages(RelayTree tree) const {
  std::vector<std::uint32_t> children(topology_.node_count(), 0);
  for (const RelayHop& hop : tree.hops) ++children[hop.parent.index()];
  std::vector<std::optional<RelayHop>> way_to(topology_.node_count());  // By node that is passed.
  RelayTree shorter{tree.root, {}};
  for (RelayHop& hop : tree.hops) {
    if (std::optional<RelayHop>& before = way_to[hop.parent.index()]) {
      hop.parent = before->parent;
      const bool forward = direction_ == Direction::forward;
      hop.links.insert(forward ? hop.links.begin() : hop.links.end(), before->links.begin(), before->links.end());
    }
    const bool is_passage = !topology_.node(hop.child).is_rank && children[hop.child.index()] == 1;
    if (is_passage) {
      way_to[hop.child.index()] = std::move(hop);
    } else {
      shorter.hops.push_back(std::move(hop));
    }
  }
  return shorter;
}

}  // namespace espalier::planners
