#include "planners/bounds/cut_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "planners/bounds/aggregation_bound.h"
#include "planners/bounds/cut_rate.h"
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

Bound cut_bound_of(const Topology& topology, const FlowNetwork& network, const CutRate& rate, std::int64_t parts,
                   std::string what) {
  if (!topology.first_not_relaying().is_none()) what += "; ranks that must not relay pass nothing on";
  return {seconds_per_byte(network, rate, parts), nodes_inside(topology, network, rate), std::move(what)};
}

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

CutBound all_gather_bound(const Topology& topology, const Collective& collective, Direction direction) {
  const FlowNetwork network(topology, direction);
  const auto cut = std::make_shared<const FlowCut>(FlowCut{network, all_gather_cut(network, collective.shares)});
  return {cut_bound_of(topology, cut->network, cut->rate, collective.share_sum(),
                       what_crosses(collective, cut->rate, direction)),
          cut};
}

CutBound broadcast_bound(const Topology& topology, Rank root, FlowNetwork network) {
  CutRate rate = broadcast_cut(network, root);
  const auto cut = std::make_shared<const FlowCut>(FlowCut{std::move(network), std::move(rate)});
  return {cut_bound_of(topology, cut->network, cut->rate, 1,
                       fmt::format("all S bytes have to {} it", side_word(cut->network.direction()))),
          cut};
}

CutBound gather_bound(const Topology& topology, const Collective& collective, Direction direction) {
  if (collective.share_of(collective.root) == collective.share_sum()) {
    return {{Rational(0), {}, "the root has all of it: nothing has to move"}, nullptr};
  }
  const FlowNetwork network(topology, direction);
  const auto cut =
      std::make_shared<const FlowCut>(FlowCut{network, gather_cut(network, collective.root, collective.shares)});
  return {cut_bound_of(topology, cut->network, cut->rate, collective.share_sum(),
                       what_crosses(collective, cut->rate, direction)),
          cut};
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

Result<void> check_reachable(const Topology& topology) {
  const auto unreachable = find_unreachable(topology);
  if (!unreachable) return {};
  return fail(ErrorCode::infeasible, describe_unreachable(topology, *unreachable),
              "add a link, or leave one of them out of the ranks");
}

/// The smallest cut between any two ranks, either way.
Bound smallest_separating_cut(const Topology& topology, const AllReduceFloors& floors) {
  const Rank center = topology.first_relaying();
  std::vector<Rank> roots;  // Cuts around one that relays, both ways, are all there are.
  for (std::size_t i = 0; i < topology.rank_count() && center.is_none(); ++i) roots.emplace_back(i);
  if (!center.is_none()) roots.push_back(center);
  std::optional<Bound> smallest;
  for (const Rank root : roots) {
    for (const auto& half : {floors.all_gather, floors.reduce_scatter}) {
      if (center.is_none() && half == floors.reduce_scatter) continue;
      Bound bound = broadcast_bound(topology, root, half->network).bound;
      if (!smallest || bound.time_per_byte > smallest->time_per_byte) smallest = std::move(bound);
    }
  }
  return *std::move(smallest);
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

Result<CutBound> solve_cut(const Topology& topology, const Collective& collective) {
  if (auto reachable = check_reachable(topology); !reachable) return tl::unexpected(reachable.error());
  const bool alone = topology.rank_count() == 1;
  const bool inward = reduces(collective.kind) || collective.kind == CollectiveKind::scatter;
  const Direction direction = inward ? Direction::reversed : Direction::forward;
  switch (collective.kind) {
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: {
      if (alone) return CutBound{nothing_moves(), nullptr};
      CutBound found = all_gather_bound(topology, collective, direction);
      // The other shards enter a rank and its own one leaves it.
      raise_to_backplanes(topology, 1, found.bound);
      return found;
    }
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      if (alone) return CutBound{nothing_moves(), nullptr};
      return broadcast_bound(topology, collective.root, FlowNetwork(topology, direction));
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      if (alone) return CutBound{nothing_moves(), nullptr};
      return gather_bound(topology, collective, direction);
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv: break;
  }
  return fail(ErrorCode::unsupported, fmt::format("no single cut proves the bound of {}", to_string(collective.kind)));
}

Result<Bound> cut_bound(const Topology& topology, const Collective& collective) {
  return solve_cut(topology, collective).map([](const CutBound& found) { return found.bound; });
}

Result<void> check_somebody_adds(const Topology& topology) {
  if (topology.rank_count() == 1 || !topology.first_relaying().is_none() || computes_in_network(topology)) return {};
  return fail(ErrorCode::infeasible,
              fmt::format("all_reduce needs a rank that may relay: who adds up a sum sends on what others brought, and "
                          "none of {}'s ranks may",
                          topology.name()),
              "let one of them relay");
}

const Bound& AllReduceFloors::best() const {
  return messages && messages->time_per_byte > smallest_cut.time_per_byte ? *messages : smallest_cut;
}

Result<AllReduceFloors> all_reduce_floors(const Topology& topology) {
  if (auto reachable = check_reachable(topology); !reachable) return tl::unexpected(reachable.error());
  if (topology.rank_count() == 1) return AllReduceFloors{nothing_moves(), std::nullopt, Rational(0), nullptr, nullptr};
  if (auto possible = check_somebody_adds(topology); !possible) return tl::unexpected(possible.error());
  const auto half = [&](CollectiveKind kind) {
    return *solve_cut(topology, {kind, static_cast<std::uint32_t>(topology.rank_count()), Rank()});
  };
  const CutBound in = half(CollectiveKind::reduce_scatter);
  const CutBound out = half(CollectiveKind::all_gather);
  AllReduceFloors floors{{}, std::nullopt, in.bound.time_per_byte + out.bound.time_per_byte, in.cut, out.cut};
  floors.smallest_cut = smallest_separating_cut(topology, floors);
  // Every rank's contribution leaves it and the sum of the others enters it.
  raise_to_backplanes(topology, 2, floors.smallest_cut);
  floors.messages = computes_in_network(topology) ? domain_message_bound(topology) : message_bound(topology);
  return floors;
}

}  // namespace espalier::planners
