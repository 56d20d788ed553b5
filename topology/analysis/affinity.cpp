#include "topology/analysis/affinity.h"

#include <algorithm>

namespace espalier {
namespace {

/// A breadth-first search from one rank that passes PCIe bridges and processors, and ends at NICs.
class MachineSearch {
 public:
  explicit MachineSearch(const Topology& topology)
      : topology_(topology), depth_(topology.node_count(), 0), before_(topology.node_count()) {}

  Affinity run(Rank rank) {
    Affinity found{rank, {}, {}, {}, {}};
    const NodeId start = topology_.node_of(rank);
    reached_.assign(1, start);
    depth_[start.index()] = 1;
    for (std::size_t next = 0; next < reached_.size(); ++next) visit(reached_[next], start, found);
    std::ranges::sort(found.nics);
    if (!found.nics.empty()) found.bridges = path_between(start, found.nics.front());
    found.fabric = switches_of(found.nics);
    for (const NodeId node : reached_) depth_[node.index()] = 0;
    return found;
  }

 private:
  void visit(NodeId node, NodeId start, Affinity& found) {
    const Node& at = topology_.node(node);
    if (at.kind == NodeKind::nic) {
      if (found.nics.empty() || depth_[node.index()] == depth_[found.nics.front().index()]) found.nics.push_back(node);
      return;
    }
    if (at.kind == NodeKind::cpu && !at.is_rank && found.processor.is_none()) found.processor = node;
    for (const LinkId link : topology_.out_links(node)) {
      const NodeId far = topology_.link(link).head;
      const Node& reached = topology_.node(far);
      const bool is_inside = !reached.is_rank && reached.kind != NodeKind::switch_node && reached.kind != NodeKind::gpu;
      if (far == start || !is_inside || depth_[far.index()] != 0) continue;
      depth_[far.index()] = depth_[node.index()] + 1;
      before_[far.index()] = node;
      reached_.push_back(far);
    }
  }

  [[nodiscard]] std::vector<NodeId> path_between(NodeId start, NodeId end) const {
    std::vector<NodeId> path;
    for (NodeId node = before_[end.index()]; node != start; node = before_[node.index()]) path.push_back(node);
    std::ranges::reverse(path);
    return path;
  }

  [[nodiscard]] std::vector<NodeId> switches_of(const std::vector<NodeId>& nics) const {
    std::vector<NodeId> switches;
    for (const NodeId nic : nics) {
      for (const LinkId link : topology_.out_links(nic)) {
        const NodeId far = topology_.link(link).head;
        if (topology_.node(far).kind == NodeKind::switch_node) switches.push_back(far);
      }
    }
    std::ranges::sort(switches);
    const auto same = std::ranges::unique(switches);
    switches.erase(same.begin(), same.end());
    return switches;
  }

  const Topology& topology_;
  std::vector<std::size_t> depth_;  ///< By node: one more than the number of links from the rank; 0: not reached.
  std::vector<NodeId> before_;      ///< By node that was reached: from where.
  std::vector<NodeId> reached_;     ///< In the order of their depth.
};

}  // namespace

std::vector<Affinity> find_affinities(const Topology& topology) {
  MachineSearch search(topology);
  std::vector<Affinity> affinities;
  affinities.reserve(topology.rank_count());
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) affinities.push_back(search.run(Rank(rank)));
  return affinities;
}

}  // namespace espalier
