#include "planners/used_paths.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "planners/graph/work_budget.h"
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

/// Whether a path through these places so far can be made a ring through all. Where the work is spent, nothing speaks
/// against it.
bool extend_to_ring(const std::vector<std::vector<std::size_t>>& next, std::vector<bool>& is_on, std::size_t at,
                    std::size_t left, WorkBudget& work) {
  if (!work.spend()) return true;
  if (left == 0) return std::ranges::find(next[at], std::size_t{0}) != next[at].end();
  for (const std::size_t to : next[at]) {
    if (is_on[to]) continue;
    is_on[to] = true;
    if (extend_to_ring(next, is_on, to, left - 1, work)) return true;
    is_on[to] = false;
  }
  return false;
}

/// Whether a ring leads through all places, `next` being those that each one leads to.
bool has_ring(const std::vector<std::vector<std::size_t>>& next) {
  constexpr std::int64_t max_steps = 1 << 20;
  WorkBudget work(max_steps);
  std::vector<bool> is_on(next.size(), false);
  is_on[0] = true;
  return next.size() == 1 || extend_to_ring(next, is_on, 0, next.size() - 1, work);
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
    std::set<std::uint32_t> has_bus;
    for (std::size_t i = 0; i < topology.link_count(); ++i) {
      // Only where there is PCIe to be left out it matters what fabric joins.
      const std::uint32_t box = boxes_[topology.link(LinkId(i)).tail.index()];
      if (kinds_[i] == LinkKind::pcie && has_bus.insert(box).second) is_joined_[box] = fabric_joins(ranks_[box]);
    }
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

  /// Whether fabric leads through all ranks in a ring, each next one reached without passing ranks.
  [[nodiscard]] bool fabric_joins(const std::vector<NodeId>& ranks) const {
    if (ranks.empty()) return false;
    std::map<NodeId, std::size_t> place;
    for (const NodeId rank : ranks) place.emplace(rank, place.size());
    std::vector<std::vector<std::size_t>> next(ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      for (const NodeId rank : fabric_neighbours(ranks[i])) next[i].push_back(place.at(rank));
    }
    return has_ring(next);
  }

  /// The other ranks of a rank's box that fabric leads to without passing ranks.
  [[nodiscard]] std::set<NodeId> fabric_neighbours(NodeId rank) const {
    std::set<NodeId> reached{rank}, found;
    for (std::deque<NodeId> open{rank}; !open.empty(); open.pop_front()) {
      for (const LinkId id : topology_.out_links(open.front())) {
        const NodeId head = topology_.link(id).head;
        if (kinds_[id.index()] != LinkKind::fabric || is_idle(topology_, id) || !reached.insert(head).second) continue;
        if (topology_.node(head).is_rank) {
          found.insert(head);
        } else {
          open.push_back(head);
        }
      }
    }
    return found;
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
          if (kinds_[id.index()] != LinkKind::pcie || is_idle(topology_, id) || seen.contains(next)) continue;
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
      if (is_bus || is_idle(topology_, LinkId(i)) || (kinds_[i] == LinkKind::network && !are_several)) continue;
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

/// Whether no way inside a box takes this link.
bool is_avoided(const Topology& topology, LinkId id) {
  return kind_of(topology, id) == LinkKind::network || is_idle(topology, id);
}

/// The same network and links, those that are avoided so slow that no route takes them where there is another.
Topology without_avoided(const Topology& topology) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!is_avoided(topology, LinkId(i))) continue;
    links[i].nominal = {1};
    links[i].efficiency_ppm = 1'000'000;
  }
  auto made = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "other rates leave a topology one");
  return *std::move(made);
}

/// The best ways from rank to rank that stay in their box and pass no idle GPU.
class InsideRoutes {
 public:
  explicit InsideRoutes(const Topology& topology) : topology_(topology) {}

  std::optional<std::vector<LinkId>> find(const Route& between) {
    if (!inside_) inside_ = without_avoided(topology_);
    auto found = find_route(*inside_, between.src, between.dst);
    const auto is_taboo = [&](LinkId link) { return is_avoided(topology_, link); };
    if (!found || std::ranges::any_of(found->links, is_taboo)) return std::nullopt;
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
  if (made && !find_unreachable(*made)) {
    used_ = *std::move(made);
  } else {
    pass_no_idle();
  }
}

void UsedPaths::pass_no_idle() {
  auto without_idle = take([&](LinkId link) { return !is_idle(whole_, link); });
  if (!without_idle || !find_unreachable(*without_idle)) {
    used_ = std::move(without_idle);
    return;
  }
  // Whose own NIC is gone uses another of its box, which machines that name no path through the host show beside its
  // GPU.
  std::vector<bool> has_nic(whole_.node_count(), false);
  for (const Link& link : whole_.links()) {
    if (whole_.node(link.head).kind == NodeKind::nic) has_nic[link.tail.index()] = true;
  }
  const auto passes = [&](NodeId node) { return !is_idle_gpu(whole_.node(node)) || has_nic[node.index()]; };
  auto by_nics = take([&](LinkId id) { return passes(whole_.link(id).tail) && passes(whole_.link(id).head); });
  const bool are_joined = by_nics ? !find_unreachable(*by_nics) : !find_unreachable(whole_);
  if (!are_joined) by_nics = std::nullopt;  // No other way at all: whole_ as it is.
  used_ = std::move(by_nics);
}

std::optional<Topology> UsedPaths::take(const std::function<bool(LinkId)>& is_taken) {
  std::vector<Link> links;
  origins_.clear();
  for (std::size_t i = 0; i < whole_.link_count(); ++i) {
    if (!is_taken(LinkId(i))) continue;
    links.push_back(whole_.link(LinkId(i)));
    origins_.emplace_back(i);
  }
  if (links.size() == whole_.link_count()) return std::nullopt;
  auto made = Topology::make(whole_.name(), {whole_.nodes().begin(), whole_.nodes().end()}, std::move(links));
  ESPALIER_CHECK(made.has_value(), "fewer links leave a topology one");
  return *std::move(made);
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
