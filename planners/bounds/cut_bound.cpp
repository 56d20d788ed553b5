#include "planners/bounds/cut_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "planners/bounds/aggregation_bound.h"
#include "planners/bounds/cut_rate.h"
#include "planners/planning_problem.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

BigInteger to_integer(__int128 value) { return BigInteger(value); }

/// Seconds per byte of S when each part that crosses the cut has S / parts bytes.
Rational seconds_per_byte(const FlowNetwork& network, const CutRate& rate, std::int64_t parts) {
  return Rational(to_integer(rate.parts), to_integer(rate.capacity) * network.capacity_unit() * parts);
}

/// A rank is inside where what it brings is.
std::vector<NodeId> nodes_inside(const Topology& topology, const FlowNetwork& network, const CutRate& rate) {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Rank rank = topology.rank_of(NodeId(i));
    if (rate.inside[rank.is_none() ? i : network.source_of(rank)]) nodes.emplace_back(i);
  }
  return nodes;
}

std::string_view side_word(Direction direction) { return direction == Direction::forward ? "leave" : "enter"; }

std::string count_of(__int128 count, std::string_view noun) {
  return fmt::format("{} {}{}", static_cast<std::int64_t>(count), noun, count == 1 ? "" : "s");
}

/// "the shards of 3 ranks have to leave it, S/8 bytes each", or with shares "shards of 5/9 S have to leave it in all".
std::string what_crosses(const Collective& collective, const CutRate& rate, Direction direction) {
  const std::string_view noun = collective.kind == CollectiveKind::reduce_scatter ? "sums" : "shards";
  if (collective.shares.empty()) {
    return fmt::format("the {} of {} have to {} it, S/{} bytes each", noun, count_of(rate.parts, "rank"),
                       side_word(direction), collective.rank_count);
  }
  const Rational part = make_rational(static_cast<std::int64_t>(rate.parts), collective.share_sum());
  if (part == 1) return fmt::format("all S bytes of {} have to {} it", noun, side_word(direction));
  return fmt::format("{} of {} S have to {} it in all", noun, to_string(part), side_word(direction));
}

/// What the tightest cut proves; the parts that cross it are of S / parts bytes each.
Bound bound_by_cut(const PlanningProblem& problem, const Collective& collective) {
  const Topology& topology = problem.topology();
  const Direction direction = cut_direction(collective.kind);
  const CutRate& rate = problem.tightest_cut(collective);
  const bool has_parts = has_shards(collective.kind);
  std::string what = has_parts ? what_crosses(collective, rate, direction)
                               : fmt::format("all S bytes have to {} it", side_word(direction));
  if (rate.has_relays) {
    what = fmt::format("the shards that have to {} it, as what a rank passes on takes its backplane twice",
                       side_word(direction));
  }
  if (!topology.first_not_relaying().is_none()) what += "; ranks that must not relay pass nothing on";
  const FlowNetwork& network = problem.flow_network(direction);
  return {seconds_per_byte(network, rate, has_parts ? collective.share_sum() : 1),
          nodes_inside(topology, network, rate), std::move(what)};
}

/// A rank's backplane carries what enters and what leaves it. `factor` x S bytes do in every schedule.
void raise_to_backplanes(const Topology& topology, std::int64_t factor, Bound& bound) {
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    const std::int64_t backplane = topology.node(node).bandwidth.bytes_per_second;
    if (backplane == 0) continue;
    const Rational time = make_rational(factor, backplane);
    if (time <= bound.time_per_byte) continue;
    bound = {time, {node}, fmt::format("{} S bytes have to pass its backplane", factor)};
  }
}

Bound nothing_moves() { return {Rational(0), {}, "one rank: nothing has to move"}; }

/// The smallest cut between any two ranks, in either direction.
Bound smallest_separating_cut(const PlanningProblem& problem) {
  const auto count = static_cast<std::uint32_t>(problem.topology().rank_count());
  const Rank center = problem.topology().first_relaying();
  std::vector<Collective> sides;  // Cuts around one that relays, in both directions, are all there are.
  for (std::size_t i = 0; i < count && center.is_none(); ++i) {
    sides.push_back({CollectiveKind::broadcast, count, Rank(i)});
  }
  if (!center.is_none()) {
    sides = {{CollectiveKind::broadcast, count, center}, {CollectiveKind::reduce, count, center}};
  }
  Bound smallest;
  for (const Collective& side : sides) {
    Bound bound = bound_by_cut(problem, side);
    if (bound.time_per_byte > smallest.time_per_byte) smallest = std::move(bound);
  }
  return smallest;
}

/// The bandwidth that leaves (or enters) a rank by its links and backplane.
BigInteger rank_bandwidth(const Topology& topology, NodeId node, std::span<const LinkId> links) {
  BigInteger sum = 0;
  for (const LinkId link : links) sum += topology.link(link).bandwidth().bytes_per_second;
  const std::int64_t backplane = topology.node(node).bandwidth.bytes_per_second;
  return backplane > 0 && sum > backplane ? BigInteger(backplane) : sum;
}

/// Every one of the at least 2(N-1) messages per piece leaves one rank and enters another.
Bound message_bound(const Topology& topology) {
  BigInteger leaving = 0, entering = 0;
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    nodes.push_back(node);
    leaving += rank_bandwidth(topology, node, topology.out_links(node));
    entering += rank_bandwidth(topology, node, topology.in_links(node));
  }
  const std::size_t messages = 2 * (topology.rank_count() - 1);
  const bool by_entering = entering < leaving;
  return {Rational(BigInteger(messages), by_entering ? entering : leaving), std::move(nodes),
          fmt::format("{} S bytes have to {} the ranks, counted one by one", messages,
                      side_word(by_entering ? Direction::reversed : Direction::forward))};
}

}  // namespace

Direction cut_direction(CollectiveKind kind) {
  return reduces(kind) || kind == CollectiveKind::scatter ? Direction::reversed : Direction::forward;
}

Result<Bound> cut_bound(const PlanningProblem& problem, const Collective& collective) {
  const Topology& topology = problem.topology();
  if (auto reachable = check_reachable(topology); !reachable) return tl::unexpected(reachable.error());
  const CollectiveKind kind = collective.kind;
  if (kind == CollectiveKind::all_reduce || slices_have_destination(kind)) {
    return fail(ErrorCode::unsupported, fmt::format("no single cut proves the bound of {}", to_string(kind)));
  }
  if (topology.rank_count() == 1) return nothing_moves();
  if (has_shards(kind) && has_root(kind) && collective.share_of(collective.root) == collective.share_sum()) {
    return Bound{Rational(0), {}, "the root has all of it: nothing has to move"};
  }
  Bound bound = bound_by_cut(problem, collective);
  // The other shards enter a rank and its own one leaves it.
  if (!has_root(kind)) raise_to_backplanes(topology, 1, bound);
  return bound;
}

bool trees_reach_cuts(const PlanningProblem& problem) {
  const FlowNetwork& network = problem.flow_network(Direction::forward);
  std::vector<__int128> surplus(network.vertex_count(), 0);
  for (const FlowArc& arc : network.arcs()) {
    if (arc.link.is_none()) return false;
    surplus[arc.head] += arc.capacity;
    surplus[arc.tail] -= arc.capacity;
  }
  const bool all_relay = problem.topology().first_not_relaying().is_none();
  for (std::uint32_t vertex = 0; vertex < surplus.size(); ++vertex) {
    if (network.rank_at(vertex).is_none() && (!all_relay || surplus[vertex] != 0)) return false;
  }
  return true;
}

Result<void> check_somebody_adds(const Topology& topology) {
  const bool adds = std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.reduction; });
  if (topology.rank_count() == 1 || !topology.first_relaying().is_none() || adds) return {};
  return fail(
      ErrorCode::unsupported,
      fmt::format("who adds up a sum sends on what others brought, and none of {}'s ranks may", topology.name()),
      "use packing or oneshot: each rank sends its input to every other one");
}

const Bound& AllReduceFloors::best() const {
  return messages && messages->time_per_byte > smallest_cut.time_per_byte ? *messages : smallest_cut;
}

Result<AllReduceFloors> all_reduce_floors(const PlanningProblem& problem) {
  const Topology& topology = problem.topology();
  if (auto reachable = check_reachable(topology); !reachable) return tl::unexpected(reachable.error());
  if (topology.rank_count() == 1) return AllReduceFloors{nothing_moves(), std::nullopt, Rational(0)};
  if (auto possible = check_somebody_adds(topology); !possible) return tl::unexpected(possible.error());
  const auto half = [&](CollectiveKind kind) {
    return cut_bound(problem, {kind, static_cast<std::uint32_t>(topology.rank_count()), Rank()})->time_per_byte;
  };
  AllReduceFloors floors{smallest_separating_cut(problem), std::nullopt,
                         half(CollectiveKind::reduce_scatter) + half(CollectiveKind::all_gather)};
  // Every rank's contribution leaves it and the sum of the others enters it.
  raise_to_backplanes(topology, 2, floors.smallest_cut);
  floors.messages = computes_in_network(topology) ? domain_message_bound(problem) : message_bound(topology);
  return floors;
}

}  // namespace espalier::planners
