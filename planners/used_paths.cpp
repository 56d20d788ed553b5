#include "planners/used_paths.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "topology/link_kind.h"
#include "topology/reachable.h"
#include "topology/routes.h"

namespace espalier::planners {
namespace {

/// Which way data goes on a link beside the fabric: towards the network, from it, or either.
enum class Phase : std::uint8_t { either, out, in };

struct KeptLink {
  LinkId origin;
  Phase phase = Phase::either;
};

/// By node: the number of the box that it is in.
std::vector<std::uint32_t> find_boxes(const Topology& topology, const std::vector<LinkKind>& kinds) {
  std::vector<std::uint32_t> box(topology.node_count());
  for (std::size_t i = 0; i < box.size(); ++i) box[i] = static_cast<std::uint32_t>(i);
  const auto find = [&](std::uint32_t node) {
    while (box[node] != node) node = box[node] = box[box[node]];
    return node;
  };
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    if (kinds[i] != LinkKind::network) box[find(link.tail.value())] = find(link.head.value());
  }
  for (std::size_t i = 0; i < box.size(); ++i) box[i] = find(static_cast<std::uint32_t>(i));
  return box;
}

/// Finds which links are kept, and which nodes have to be parted.
class PathSearch {
 public:
  explicit PathSearch(const Topology& topology) : topology_(topology) {
    for (std::size_t i = 0; i < topology.link_count(); ++i) kinds_.push_back(kind_of(topology, LinkId(i)));
    boxes_ = find_boxes(topology, kinds_);
    ranks_.resize(topology.node_count());
    for (std::size_t i = 0; i < topology.rank_count(); ++i) {
      const NodeId node = topology.node_of(Rank(i));
      ranks_[boxes_[node.index()]].push_back(node);
    }
    is_joined_.resize(topology.node_count());
    for (std::size_t box = 0; box < ranks_.size(); ++box) is_joined_[box] = fabric_joins(ranks_[box]);
    out_.resize(topology.link_count());
    in_.resize(topology.link_count());
    mark_buses();
    keep_links();
  }

  [[nodiscard]] const std::vector<KeptLink>& kept() const { return kept_; }
  [[nodiscard]] const std::vector<std::uint32_t>& boxes() const { return boxes_; }

  /// Which way data goes that is at this end of a link.
  [[nodiscard]] Phase phase_at(const KeptLink& kept, NodeId end) const {
    if (topology_.node(end).kind != NodeKind::nic) return kept.phase;
    const bool enters = topology_.link(kept.origin).head == end;
    const bool is_of_box = kinds_[kept.origin.index()] != LinkKind::network;
    return enters == is_of_box ? Phase::out : Phase::in;
  }

  /// By node: whether data could turn round there, so that what comes from the network needs a node of its own.
  [[nodiscard]] std::vector<bool> parted() const {
    std::vector<std::set<NodeId>> inner(topology_.node_count()), outer(topology_.node_count());
    for (const KeptLink& kept : kept_) {
      const Link& link = topology_.link(kept.origin);
      for (const auto& [end, other] : {std::pair{link.tail, link.head}, {link.head, link.tail}}) {
        if (!is_phased(kept, end)) continue;
        const Phase phase = phase_at(kept, end);
        const bool is_inner = (phase == Phase::out) == (end == link.head);
        (is_inner ? inner : outer)[end.index()].insert(other);
      }
    }
    std::vector<bool> parted(topology_.node_count());
    for (std::size_t i = 0; i < parted.size(); ++i) parted[i] = inner[i].size() > 1 || outer[i].size() > 1;
    // What is beside a parted node would lead from its one half to the other.
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (const KeptLink& kept : kept_) {
        const Link& link = topology_.link(kept.origin);
        if (!is_phased(kept, link.tail) || !is_phased(kept, link.head)) continue;
        if (parted[link.tail.index()] == parted[link.head.index()]) continue;
        parted[link.tail.index()] = parted[link.head.index()] = goes_on = true;
      }
    }
    return parted;
  }

 private:
  /// Whether data at this end of a link goes one way only, and is forwarded there.
  [[nodiscard]] bool is_phased(const KeptLink& kept, NodeId end) const {
    return phase_at(kept, end) != Phase::either && !topology_.node(end).is_rank;
  }

  [[nodiscard]] bool fabric_joins(const std::vector<NodeId>& ranks) const {
    return !ranks.empty() && fabric_reaches(ranks, true) && fabric_reaches(ranks, false);
  }

  [[nodiscard]] bool fabric_reaches(const std::vector<NodeId>& ranks, bool forwards) const {
    std::set<NodeId> reached{ranks.front()};
    std::deque<NodeId> open{ranks.front()};
    for (; !open.empty(); open.pop_front()) {
      for (const LinkId id : forwards ? topology_.out_links(open.front()) : topology_.in_links(open.front())) {
        const NodeId next = forwards ? topology_.link(id).head : topology_.link(id).tail;
        if (kinds_[id.index()] == LinkKind::fabric && reached.insert(next).second) open.push_back(next);
      }
    }
    return std::ranges::all_of(ranks, [&](NodeId rank) { return reached.contains(rank); });
  }

  /// Marks the PCIe links on the shortest ways from a rank to the nearest NICs or from a NIC to the nearest ranks, or
  /// from these to it.
  void mark_ways(NodeId start, bool forwards, std::vector<bool>& marks) {
    const bool is_from_rank = topology_.node(start).is_rank;
    const auto is_goal = [&](NodeId node) {
      return is_from_rank ? topology_.node(node).kind == NodeKind::nic : topology_.node(node).is_rank;
    };
    const auto passes = [&](NodeId id) {
      const Node& node = topology_.node(id);
      return node.kind == NodeKind::pcie || (node.kind == NodeKind::cpu && !node.is_rank);
    };
    std::vector<NodeId> level{start};
    std::set<NodeId> seen{start};
    std::vector<std::pair<NodeId, LinkId>> steps;  // the node that a link leads to, level by level
    std::set<NodeId> wanted;
    while (!level.empty() && wanted.empty()) {
      std::set<NodeId> next_level;
      for (const NodeId node : level) {
        for (const LinkId id : forwards ? topology_.out_links(node) : topology_.in_links(node)) {
          const NodeId next = forwards ? topology_.link(id).head : topology_.link(id).tail;
          if (kinds_[id.index()] != LinkKind::pcie || seen.contains(next)) continue;
          if (!is_goal(next) && !passes(next)) continue;
          steps.emplace_back(next, id);
          next_level.insert(next);
          if (is_goal(next)) wanted.insert(next);
        }
      }
      seen.insert(next_level.begin(), next_level.end());
      level.assign(next_level.begin(), next_level.end());
    }
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      if (!wanted.contains(step->first)) continue;
      marks[step->second.index()] = true;
      const Link& link = topology_.link(step->second);
      wanted.insert(forwards ? link.tail : link.head);
    }
  }

  void mark_buses() {
    for (std::size_t i = 0; i < topology_.node_count(); ++i) {
      const Node& node = topology_.node(NodeId(i));
      if (!is_joined_[boxes_[i]] || (!node.is_rank && node.kind != NodeKind::nic)) continue;
      mark_ways(NodeId(i), true, node.is_rank ? out_ : in_);
      mark_ways(NodeId(i), false, node.is_rank ? in_ : out_);
    }
  }

  void keep_links() {
    const auto has_ranks = [](const std::vector<NodeId>& ranks) { return !ranks.empty(); };
    const bool are_several = std::ranges::count_if(ranks_, has_ranks) > 1;
    for (std::size_t i = 0; i < topology_.link_count(); ++i) {
      const std::uint32_t box = boxes_[topology_.link(LinkId(i)).tail.index()];
      const bool is_bus = kinds_[i] == LinkKind::pcie && (is_joined_[box] || ranks_[box].empty());
      if (is_bus && are_several && out_[i]) kept_.push_back({LinkId(i), Phase::out});
      if (is_bus && are_several && in_[i]) kept_.push_back({LinkId(i), Phase::in});
      if (is_bus || (kinds_[i] == LinkKind::network && !are_several)) continue;
      kept_.push_back({LinkId(i), Phase::either});
    }
  }

  const Topology& topology_;
  std::vector<LinkKind> kinds_;
  std::vector<std::uint32_t> boxes_;
  std::vector<std::vector<NodeId>> ranks_;  ///< By box.
  std::vector<bool> is_joined_;             ///< By box: fabric joins its ranks.
  std::vector<bool> out_, in_;              ///< By link: it leads a rank to a NIC, a NIC to a rank.
  std::vector<KeptLink> kept_;
};

/// The nodes of a network and, behind them, a second one for each that is parted.
std::vector<Node> part_nodes(const Topology& topology, const std::vector<bool>& parted, std::vector<NodeId>& second) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (std::size_t i = 0; i < parted.size(); ++i) {
    second.push_back(parted[i] ? NodeId(nodes.size()) : NodeId(i));
    if (!parted[i]) continue;
    Node copy = nodes[i];
    do {
      copy.id += " in";
    } while (!topology.find_node(copy.id).is_none());
    nodes.push_back(std::move(copy));
  }
  return nodes;
}

bool touches_network(const Topology& topology, std::span<const LinkId> links) {
  return std::ranges::any_of(links, [&](LinkId link) { return kind_of(topology, link) == LinkKind::network; });
}

/// The same network and links, those between machines so slow that no route takes them where there is another.
Topology without_network(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (kind_of(topology, LinkId(i)) == LinkKind::network) links[i].nominal = {1};
  }
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "other rates leave a topology one");
  return *std::move(made);
}

/// The best ways from rank to rank that do not touch the network.
class InsideRoutes {
 public:
  explicit InsideRoutes(const Topology& topology) : topology_(topology) {}

  std::optional<std::vector<LinkId>> find(const Route& between) {
    if (!inside_) inside_ = without_network(topology_);
    auto found = find_route(*inside_, between.src, between.dst);
    if (!found || touches_network(topology_, found->links)) return std::nullopt;
    return std::move(found->links);
  }

 private:
  const Topology& topology_;
  std::optional<Topology> inside_;
};

/// A way without what lies between two visits of one node: where only a NIC leads from one rank of a box to another.
std::vector<LinkId> without_loops(const Topology& topology, std::span<const LinkId> links) {
  std::vector<LinkId> kept;
  for (const LinkId link : links) {
    kept.push_back(link);
    const NodeId head = topology.link(link).head;
    const auto visit = std::ranges::find_if(kept, [&](LinkId other) { return topology.link(other).tail == head; });
    kept.erase(visit, kept.end());
  }
  return kept;
}

}  // namespace

UsedPaths::UsedPaths(const Topology& topology) : whole_(topology) {
  const PathSearch search(topology);
  const std::vector<bool> parted = search.parted();
  if (search.kept().size() == topology.link_count() && std::ranges::find(parted, true) == parted.end()) return;
  boxes_ = search.boxes();
  std::vector<NodeId> second;
  std::vector<Node> nodes = part_nodes(topology, parted, second);
  std::vector<Link> links;
  for (const KeptLink& kept : search.kept()) {
    Link link = topology.link(kept.origin);
    const auto place = [&](NodeId end) { return search.phase_at(kept, end) == Phase::in ? second[end.index()] : end; };
    const NodeId tail = place(link.tail), head = place(link.head);
    link.tail = tail;
    link.head = head;
    links.push_back(std::move(link));
    origins_.push_back(kept.origin);
  }
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  if (!made || find_unreachable(*made)) return;
  used_ = *std::move(made);
}

bool UsedPaths::leaves_its_box(const Route& route) const {
  const std::size_t ranks = whole_.rank_count();
  if (route.src.index() >= ranks || route.dst.index() >= ranks) return false;
  const auto box = [&](Rank rank) { return boxes_[whole_.node_of(rank).index()]; };
  return box(route.src) == box(route.dst) && touches_network(*used_, route.links);
}

Schedule UsedPaths::restore(const Schedule& planned) const {
  Schedule restored(planned.header());
  InsideRoutes used(*used_), any(whole_);
  std::vector<RouteId> routes;
  for (std::size_t i = 0; i < planned.route_count(); ++i) {
    const Route route = planned.route(RouteId(i));
    const bool leaves = leaves_its_box(route);
    auto by_used = leaves ? used.find(route) : std::nullopt;
    auto by_any = leaves && !by_used ? any.find(route) : std::nullopt;
    if (!by_any) {
      by_any.emplace();
      for (const LinkId link : by_used ? std::span<const LinkId>(*by_used) : route.links) {
        by_any->push_back(origins_[link.index()]);
      }
    }
    routes.push_back(restored.add_route(route.src, route.dst, without_loops(whole_, *by_any)));
  }
  restored.transfers = planned.transfers;
  for (Transfer& transfer : restored.transfers) transfer.route = routes[transfer.route.index()];
  return restored;
}

}  // namespace espalier::planners
