#include "planners/symmetry/canonical_network.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "planners/damage/alike.h"
#include "planners/graph/rank_groups.h"
#include "planners/symmetry/network_graph.h"
#include "topology/cables.h"
#include "topology/link_kind.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

constexpr std::uint32_t far = std::numeric_limits<std::uint32_t>::max();

/// Tells the root and ranks of unlike shares apart.
std::vector<std::int64_t> marks_of(const Topology& topology, const Collective& collective) {
  std::vector<std::int64_t> marks(topology.rank_count());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const bool has_share = !collective.shares.empty() && has_shards(collective.kind);
    marks[i] = 2 * (has_share ? collective.shares[i] : 0) + (collective.root == Rank(i) ? 1 : 0);
  }
  return marks;
}

/// The same with links that are all alike but for their class, and backplanes but for being there.
Topology shape_of(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) {
    for (Bandwidth* rate : {&node.bandwidth, &node.reduce_bandwidth}) {
      if (rate->bytes_per_second != 0) rate->bytes_per_second = 1;
    }
  }
  std::vector<Link> links;
  for (const Link& link : topology.links()) {
    LinkValues values;
    values.nominal = {1};
    values.link_class = link.link_class;
    links.emplace_back(link.tail, link.head, values);
  }
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "other rates leave a topology one");
  return *std::move(made);
}

std::size_t count_kinds(const Alike& alike) {
  return std::set(alike.of_node.begin(), alike.of_node.end()).size() +
         std::set(alike.of_cable.begin(), alike.of_cable.end()).size();
}

/// Whether nothing leads to or from a node.
bool is_alone(const Topology& topology, NodeId node) {
  return topology.out_links(node).empty() && topology.in_links(node).empty();
}

/// Whether nothing shows that anything is missing, slow or left out: all GPUs that links join take part, and some
/// symmetry turns each rank into each other, and each part into all those that are alike but for rates.
bool is_whole(const Topology& topology) {
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (is_idle_gpu(topology.node(NodeId(i))) && !is_alone(topology, NodeId(i))) return false;
  }
  const std::vector<Cable> cables = find_cables(topology);
  const Alike alike = find_alike(topology, cables);
  for (std::size_t i = 1; i < topology.rank_count(); ++i) {
    if (alike.of_node[topology.node_of(Rank(i)).index()] != alike.of_node[topology.node_of(Rank(0)).index()])
      return false;
  }
  std::map<std::string_view, LinkValues> classes;
  const bool has_one_rate_each = std::ranges::all_of(topology.links(), [&](const Link& link) {
    return classes.try_emplace(link.link_class, link.values()).first->second == link.values();
  });
  if (has_one_rate_each) return true;
  const Topology shape = shape_of(topology);
  return count_kinds(alike) == count_kinds(find_alike(shape, find_cables(shape)));
}

/// What a node's links are, whatever their number: by class, what they lead to.
using LinkKinds = std::set<std::tuple<std::string_view, NodeKind, bool>>;

/// Whether nodes that forward have links of the same kinds, but not as many: of an altered network some may have gone
/// that no rank is nearer to than others, such as a core of a fat tree.
bool has_uneven_nodes(const Topology& topology) {
  std::map<std::pair<NodeKind, LinkKinds>, std::size_t> degrees;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(NodeId(i));
    if (node.is_rank || is_alone(topology, NodeId(i))) continue;
    LinkKinds kinds;
    for (const LinkId id : topology.out_links(NodeId(i))) {
      const Link& link = topology.link(id);
      const Node& head = topology.node(link.head);
      kinds.emplace(link.link_class, head.kind, head.is_rank);
    }
    const std::size_t degree = topology.out_links(NodeId(i)).size();
    if (degrees.try_emplace({node.kind, std::move(kinds)}, degree).first->second != degree) return true;
  }
  return false;
}

/// Puts ranks in order, with nothing to go by but the network and each node's canonical number.
class RankOrder {
 public:
  RankOrder(const Topology& topology, const std::vector<std::uint32_t>& numbers)
      : topology_(topology), numbers_(numbers) {}

  std::vector<Rank> run() {
    std::vector<std::vector<Rank>> machines = group_ranks(topology_).groups;
    for (std::vector<Rank>& machine : machines) machine = along_links(std::move(machine));
    std::ranges::sort(machines, {}, [&](const std::vector<Rank>& machine) { return number(machine.front()); });
    keep_kinds_in_place(machines);
    std::vector<Rank> order = machines.front();
    for (std::size_t i = 1; i < machines.size(); ++i) {
      const std::vector<Rank> beside = place_beside(machines.front(), std::move(machines[i]));
      order.insert(order.end(), beside.begin(), beside.end());
    }
    return order;
  }

 private:
  /// Software numbers ranks machine by machine as it is told, so machines that were unlike before anything happened to
  /// them stay in the order of their kinds; those of one kind are in the order that they are given here.
  void keep_kinds_in_place(std::vector<std::vector<Rank>>& machines) const {
    const auto kinds = topology_.kinds_of_hosts();
    std::map<std::uint32_t, std::deque<std::vector<Rank>>> of_kind;
    for (const std::vector<Rank>& machine : machines) {
      const auto known = kinds->of_host.find(topology_.node(topology_.node_of(machine.front())).host);
      if (known == kinds->of_host.end()) return;
      of_kind[known->second].push_back(machine);
    }
    if (of_kind.size() == 1) return;
    const bool are_all = std::ranges::all_of(of_kind, [&](const auto& kind) {
      return std::cmp_equal(std::ranges::count(kinds->in_order, kind.first), kind.second.size());
    });
    machines.clear();
    const auto take = [&](std::deque<std::vector<Rank>>& left) {
      machines.push_back(std::move(left.front()));
      left.pop_front();
    };
    if (are_all) {
      for (const std::uint32_t kind : kinds->in_order) {
        if (of_kind.contains(kind)) take(of_kind[kind]);
      }
    } else {  // Some lost all of their ranks. Kinds are numbered in the order of their first machines.
      for (auto& [kind, left] : of_kind) {
        while (!left.empty()) take(left);
      }
    }
  }

  [[nodiscard]] std::uint32_t number(Rank rank) const { return numbers_[topology_.node_of(rank).index()]; }

  [[nodiscard]] std::int64_t rate_between(Rank from, Rank to) const {
    std::int64_t rate = 0;
    for (const LinkId link : topology_.links_between(topology_.node_of(from), topology_.node_of(to))) {
      rate += topology_.link(link).bandwidth().bytes_per_second;
    }
    return rate;
  }

  /// From the rank with the least number on, always next the one that the widest links lead to.
  [[nodiscard]] std::vector<Rank> along_links(std::vector<Rank> left) const {
    const auto by_number = [&](Rank rank) { return number(rank); };
    std::ranges::sort(left, {}, by_number);
    std::vector<Rank> order;
    while (!left.empty()) {
      auto next = left.begin();
      if (!order.empty()) {
        next = std::ranges::max_element(left, {}, [&](Rank rank) { return rate_between(order.back(), rank); });
      }
      order.push_back(*next);
      left.erase(next);
    }
    return order;
  }

  /// By node: how many links away it is, without passing ranks.
  [[nodiscard]] std::vector<std::uint32_t> distances(Rank from) const {
    std::vector<std::uint32_t> distance(topology_.node_count(), far);
    distance[topology_.node_of(from).index()] = 0;
    for (std::deque<NodeId> open{topology_.node_of(from)}; !open.empty(); open.pop_front()) {
      const bool passes = !topology_.node(open.front()).is_rank || topology_.rank_of(open.front()) == from;
      if (!passes) continue;
      for (const LinkId link : topology_.out_links(open.front())) {
        const NodeId next = topology_.link(link).head;
        if (distance[next.index()] != far) continue;
        distance[next.index()] = distance[open.front().index()] + 1;
        open.push_back(next);
      }
    }
    return distance;
  }

  /// A machine's ranks in the order of those of another that they are nearest to; those that none leads to come last.
  std::vector<Rank> place_beside(const std::vector<Rank>& first, std::vector<Rank> left) {
    std::vector<Rank> order;
    for (const Rank rank : first) {
      const auto [known, is_new] = distances_.try_emplace(rank);
      if (is_new) known->second = distances(rank);
      const auto distance = [&](Rank other) { return known->second[topology_.node_of(other).index()]; };
      const auto nearest = std::ranges::min_element(left, {}, distance);
      if (nearest == left.end() || distance(*nearest) == far) continue;
      order.push_back(*nearest);
      left.erase(nearest);
    }
    order.insert(order.end(), left.begin(), left.end());
    return order;
  }

  const Topology& topology_;
  const std::vector<std::uint32_t>& numbers_;
  std::map<Rank, std::vector<std::uint32_t>> distances_;
};

/// Nothing where ranks reach each other through GPUs that are no ranks alone, or there are no such GPUs.
std::optional<Topology> without_idle_gpus(const Topology& topology) {
  Parts idle;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (is_idle_gpu(topology.node(NodeId(i)))) idle.nodes.emplace_back(i);
  }
  if (idle.nodes.empty()) return std::nullopt;
  auto rest = without(topology, idle, "idle GPUs");
  return rest ? std::optional(*std::move(rest)) : std::nullopt;
}

/// The dead ends that links join, each with the node that is none through which it is reached.
std::vector<std::pair<NodeId, NodeId>> find_attached(const Topology& topology, const std::vector<bool>& is_dead_end) {
  std::vector<std::vector<NodeId>> beside(topology.node_count());
  for (const Link& link : topology.links()) {
    if (is_dead_end[link.head.index()]) beside[link.tail.index()].push_back(link.head);
    if (is_dead_end[link.tail.index()]) beside[link.head.index()].push_back(link.tail);
  }
  std::vector<std::pair<NodeId, NodeId>> attached;
  std::vector<bool> is_left = is_dead_end;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (is_dead_end[i]) continue;
    for (std::vector<NodeId> open{NodeId(i)}; !open.empty();) {
      const NodeId node = open.back();
      open.pop_back();
      for (const NodeId next : beside[node.index()]) {
        if (!is_left[next.index()]) continue;
        is_left[next.index()] = false;
        attached.emplace_back(next, NodeId(i));
        open.push_back(next);
      }
    }
  }
  return attached;
}

/// The place of each of these.
template <class Id>
std::vector<Id> inverse(const std::vector<Id>& ids) {
  std::vector<Id> places(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) places[ids[i].index()] = Id(i);
  return places;
}

/// By node: a number that depends on the network alone, without its dead ends.
std::vector<std::uint32_t> number_nodes(const Topology& topology, const Collective& collective,
                                        const std::vector<bool>& is_dead_end) {
  std::vector<NodeId> joined;
  std::vector<Node> nodes;
  std::vector<NodeId> places(topology.node_count());
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (is_dead_end[i]) continue;
    places[i] = NodeId(joined.size());
    joined.emplace_back(i);
    nodes.push_back(topology.node(NodeId(i)));
  }
  std::vector<Link> links;
  for (const Link& whole : topology.links()) {
    if (is_dead_end[whole.tail.index()] || is_dead_end[whole.head.index()]) continue;
    Link& link = links.emplace_back(whole);
    link.tail = places[link.tail.index()];
    link.head = places[link.head.index()];
  }
  const auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "fewer nodes leave a topology one");
  const NetworkGraph graph(*made, find_cables(*made), marks_of(*made, collective));
  const std::vector<std::uint32_t> found = canonical_numbers(graph.graph());
  std::vector<std::uint32_t> numbers(topology.node_count(), far);
  for (std::size_t i = 0; i < joined.size(); ++i) numbers[joined[i].index()] = found[i];
  return numbers;
}

}  // namespace

std::vector<bool> find_dead_ends(const Topology& topology, bool passes_idle_gpus) {
  std::vector<std::set<NodeId>> beside(topology.node_count());
  std::vector<bool> is_dead_end(topology.node_count(), false);
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    is_dead_end[i] = !passes_idle_gpus && is_idle_gpu(topology.node(NodeId(i)));
  }
  for (const Link& link : topology.links()) {
    if (is_dead_end[link.tail.index()] || is_dead_end[link.head.index()]) continue;
    beside[link.tail.index()].insert(link.head);
    beside[link.head.index()].insert(link.tail);
  }
  std::vector<NodeId> open;
  for (std::size_t i = 0; i < topology.node_count(); ++i) open.emplace_back(i);
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    std::set<NodeId>& others = beside[node.index()];
    if (is_dead_end[node.index()] || topology.node(node).is_rank || others.size() > 1) continue;
    is_dead_end[node.index()] = true;
    for (const NodeId other : others) {
      beside[other.index()].erase(node);
      open.push_back(other);
    }
    others.clear();
  }
  return is_dead_end;
}

std::unique_ptr<const CanonicalNetwork> CanonicalNetwork::make(const Topology& topology, Paths paths,
                                                               const Collective& collective, bool also_unaltered,
                                                               bool is_altered) {
  // Of send_recv the ranks' numbers say who sends to whom, of a traffic matrix its rows.
  const bool is_numbered = collective.kind == CollectiveKind::send_recv || collective.has_matrix();
  if (is_numbered || collective.rank_count < 2 || collective.rank_count > max_canonical_ranks) return nullptr;
  if (!is_altered && !also_unaltered) return nullptr;
  // Software passes no idle GPUs where there is another way.
  const auto rest = paths == Paths::software ? without_idle_gpus(topology) : std::nullopt;
  const Topology& seen = rest ? *rest : topology;
  if (is_whole(seen) && !(is_altered && has_uneven_nodes(seen))) return nullptr;
  return std::unique_ptr<const CanonicalNetwork>(new CanonicalNetwork(topology, paths, collective, !rest));
}

CanonicalNetwork::CanonicalNetwork(const Topology& topology, Paths paths, const Collective& collective,
                                   bool passes_idle_gpus)
    : root_(collective.root), shares_(collective.shares) {
  const std::vector<bool> is_dead_end = find_dead_ends(topology, passes_idle_gpus);
  const std::vector<std::uint32_t> numbers = number_nodes(topology, collective, is_dead_end);
  ranks_ = RankOrder(topology, numbers).run();
  std::vector<NodeId> forwarding;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    if (!topology.node(NodeId(i)).is_rank && numbers[i] != far) forwarding.emplace_back(i);
  }
  std::ranges::sort(forwarding, {}, [&](NodeId node) { return numbers[node.index()]; });
  for (const Rank rank : ranks_) nodes_.push_back(topology.node_of(rank));
  nodes_.insert(nodes_.end(), forwarding.begin(), forwarding.end());

  std::vector<NodeId> places(topology.node_count());
  for (std::size_t i = 0; i < nodes_.size(); ++i) places[nodes_[i].index()] = NodeId(i);
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    if (!is_dead_end[link.tail.index()] && !is_dead_end[link.head.index()]) links_.emplace_back(i);
  }
  attached_ = find_attached(topology, is_dead_end);
  // Links that are alike in all of this do for each other.
  std::ranges::stable_sort(links_, [&](LinkId a, LinkId b) {
    const auto key = [&](LinkId id) {
      const Link& link = topology.link(id);
      return std::tuple(places[link.tail.index()], places[link.head.index()], link.values());
    };
    return key(a) < key(b);
  });
  std::vector<Link> links;
  for (const LinkId id : links_) {
    Link link = topology.link(id);
    link.tail = places[link.tail.index()];
    link.head = places[link.head.index()];
    links.push_back(std::move(link));
  }
  std::vector<Node> nodes;
  for (const NodeId node : nodes_) nodes.push_back(topology.node(node));
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "another order leaves a topology one");
  topology_ = std::make_unique<const Topology>(*std::move(made));
  network_ = std::make_unique<const BundledNetwork>(*topology_, paths);
}

Collective CanonicalNetwork::place(const Collective& collective) const {
  Collective placed = collective;
  if (!root_.is_none()) placed.root = inverse(ranks_)[root_.index()];
  for (std::size_t i = 0; i < shares_.size(); ++i) placed.shares[i] = shares_[ranks_[i].index()];
  return placed;
}

Rank CanonicalNetwork::end_of(Rank end) const { return end.index() < ranks_.size() ? ranks_[end.index()] : end; }

/// Slices stay in the part of the buffer that belongs to their ranks, and parts in the order of these.
std::vector<SliceId> CanonicalNetwork::place_slices(const Schedule& planned, Schedule& restored) const {
  std::vector<SliceId> order;
  for (std::size_t i = 0; i < planned.slices.size(); ++i) order.emplace_back(i);
  const auto rank_of = [&](Rank rank) { return rank.is_none() ? rank : ranks_[rank.index()]; };
  std::ranges::stable_sort(order, {}, [&](SliceId id) {
    const Slice& slice = planned.slices[id.index()];
    return std::pair(rank_of(slice.rank), rank_of(slice.to));
  });
  restored.slices.clear();
  std::int64_t offset = 0;
  for (const SliceId id : order) {
    Slice slice = planned.slices[id.index()];
    slice = {offset, slice.length, rank_of(slice.rank), rank_of(slice.to)};
    offset += slice.length;
    restored.slices.push_back(slice);
  }
  return inverse(order);
}

Schedule CanonicalNetwork::restore(const Schedule& planned) const {
  Schedule restored(planned.header());
  restored.collective.root = root_;
  restored.collective.shares = shares_;
  if (restored.bound) restored.bound = restore(*std::move(restored.bound));
  for (NodeId& relay : restored.relays) relay = nodes_[relay.index()];
  const std::vector<SliceId> slices = place_slices(planned, restored);
  std::vector<RouteId> routes;
  for (std::size_t i = 0; i < planned.route_count(); ++i) {
    const Route route = planned.route(RouteId(i));
    std::vector<LinkId> links;
    for (const LinkId link : route.links) links.push_back(links_[link.index()]);
    routes.push_back(restored.add_route(end_of(route.src), end_of(route.dst), links));
  }
  for (const Transfer& transfer : planned.transfers) {
    const RouteId route = routes[transfer.route.index()];
    const std::size_t end = transfer.first_slice.index() + transfer.slice_count;
    for (std::size_t first = transfer.first_slice.index(); first < end;) {
      std::uint32_t count = 1;
      const std::size_t place = slices[first].index();
      while (first + count < end && slices[first + count].index() == place + count) ++count;
      restored.add_transfer(route, SliceId(place), count, transfer.action(), transfer.channel());
      first += count;
    }
  }
  return restored;
}

Bound CanonicalNetwork::restore(Bound bound) const {
  for (NodeId& node : bound.cut) node = nodes_[node.index()];
  // Dead ends lie on the side of what they are attached to, so that no link to them crosses the cut.
  const std::set<NodeId> inside(bound.cut.begin(), bound.cut.end());
  for (const auto& [dead_end, to] : attached_) {
    if (inside.contains(to)) bound.cut.push_back(dead_end);
  }
  std::ranges::sort(bound.cut);
  return bound;
}

std::vector<BoundPrice> CanonicalNetwork::restore(std::vector<BoundPrice> prices) const {
  for (BoundPrice& price : prices) {
    if (!price.link.is_none()) price.link = links_[price.link.index()];
    if (!price.node.is_none()) price.node = nodes_[price.node.index()];
  }
  return prices;
}

}  // namespace espalier::planners
