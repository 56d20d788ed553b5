#include <gtest/gtest.h>

#include <set>

#include "planners/bounds/bound.h"
#include "planners/bounds/cut_bound.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/reachable.h"

// Ranks that must not relay, on random networks: bounds against all cuts, and plans against the bounds.

namespace espalier::planners {
namespace {

/// A random network, some of whose ranks must not relay.
Topology random_network(Random& random, const test::RandomGraphOptions& options) {
  const Topology plain = test::make_topology(test::random_graph(random, options));
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  for (Node& node : nodes) node.relay = !node.is_rank || random.below(3) != 0;
  return *Topology::make("some-relay", std::move(nodes), {plain.links().begin(), plain.links().end()});
}

Collective collective_on(const Topology& topology, CollectiveKind kind, Random& random) {
  const bool rooted = has_root(kind);
  return *make_collective(kind, topology.rank_count(),
                          rooted ? std::optional(Rank(random.below(topology.rank_count()))) : std::nullopt);
}

/// All cuts of a small network: for every set of nodes, and every rank outside that has to be reached, what has to
/// leave over the links that leave, but those to other ranks that must not relay.
Rational by_all_cuts(const Topology& topology, const Collective& collective) {
  const bool reversed = reduces(collective.kind) || collective.kind == CollectiveKind::scatter;
  const bool one_source = collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce;
  const bool one_target = collective.kind == CollectiveKind::gather || collective.kind == CollectiveKind::scatter;
  Rational most = 0;
  for (std::uint32_t set = 1; set < (1U << topology.node_count()); ++set) {
    const auto inside = [&](NodeId node) { return (set >> node.value() & 1U) != 0; };
    std::int64_t parts = 0;
    for (std::size_t i = 0; i < topology.rank_count(); ++i) parts += inside(topology.node_of(Rank(i))) ? 1 : 0;
    if (one_source) parts = inside(topology.node_of(collective.root)) ? std::int64_t{collective.rank_count} : 0;
    for (std::size_t t = 0; t < topology.rank_count(); ++t) {
      if (inside(topology.node_of(Rank(t))) || (one_target && Rank(t) != collective.root)) continue;
      std::int64_t leaving = 0;
      for (const Link& link : topology.links()) {
        const NodeId from = reversed ? link.head : link.tail;
        const NodeId to = reversed ? link.tail : link.head;
        if (!inside(from) || inside(to)) continue;
        if (topology.node(to).must_not_relay() && topology.rank_of(to) != Rank(t)) continue;
        leaving += link.bandwidth().bytes_per_second;
      }
      if (parts == 0) continue;
      most = std::max(most, Rational(BigInteger(parts), BigInteger(leaving) * collective.rank_count));
    }
  }
  return most;
}

/// Replays the transfers with sets: nothing leaves a rank that must not relay but what it brought.
void expect_no_relaying(const Topology& topology, const Schedule& schedule) {
  using Held = std::set<std::size_t>;
  for (std::size_t slice = 0; slice < schedule.slices.size(); ++slice) {
    std::vector<Held> held(topology.rank_count());
    const Rank bringer = bringer_of(schedule.collective, schedule.slices[slice].ranks());
    for (std::size_t r = 0; r < held.size(); ++r) {
      if (bringer.is_none() || bringer == Rank(r)) held[r] = {r};
    }
    const std::vector<Held> brought = held;
    for (const Transfer& transfer : schedule.transfers) {
      const std::size_t first = transfer.first_slice.index();
      if (slice < first || slice >= first + transfer.slice_count) continue;
      const std::size_t src = schedule.src(transfer).index();
      const std::size_t dst = schedule.dst(transfer).index();
      const Held& sent = transfer.action() == Action::reduce_input ? brought[src] : held[src];
      if (!topology.may_relay(Rank(src))) {
        ASSERT_EQ(sent, Held({src})) << topology.rank_name(Rank(src));
      }
      if (transfer.action() == Action::copy) held[dst].clear();
      held[dst].insert(sent.begin(), sent.end());
    }
  }
}

constexpr CollectiveKind cut_kinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                        CollectiveKind::broadcast,  CollectiveKind::reduce,
                                        CollectiveKind::gather,     CollectiveKind::scatter};

TEST(NotRelaying, BoundsEqualTheWorstOfAllCuts) {
  Random random(71);
  int answered = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_network(random, {5, 2, 9, round % 2 == 0});
    for (const CollectiveKind kind : cut_kinds) {
      const Collective collective = collective_on(topology, kind, random);
      const auto bound = cut_bound(topology, collective);
      EXPECT_EQ(bound.has_value(), !find_unreachable(topology));
      if (!bound) continue;
      ++answered;
      EXPECT_EQ(bound->time_per_byte, by_all_cuts(topology, collective)) << to_string(kind);
    }
  }
  EXPECT_GT(answered, 600);
}

Topology with_computing_switches(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) node.multicast = node.reduction = !node.is_rank;
  return *Topology::make("switches-compute", std::move(nodes), {topology.links().begin(), topology.links().end()});
}

Topology without_relaying(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) node.relay = !node.is_rank;
  return *Topology::make("none-relays", std::move(nodes), {topology.links().begin(), topology.links().end()});
}

/// What a planner must reach exactly, where switches are balanced.
bool is_exact(const Planner& planner, CollectiveKind kind, bool some_relay) {
  if (kind == CollectiveKind::all_reduce && !some_relay) return planner.name == "packing";
  if (planner.name == "packing") return !slices_have_destination(kind) && kind != CollectiveKind::all_reduce;
  return planner.name == "lp" && (slices_have_destination(kind) || kind == CollectiveKind::all_reduce);
}

TEST(NotRelaying, PlansKeepToItAndReachTheBound) {
  Random random(72);
  int reached = 0;
  int exchanged = 0;
  for (int round = 0; round < 240; ++round) {
    SCOPED_TRACE(round);
    const bool computes = round % 4 == 3;
    Topology topology = random_network(random, {6, 3, 9, true});
    if (round % 8 == 1) topology = without_relaying(topology);
    const bool some_relay = !topology.first_relaying().is_none();
    if (computes) topology = with_computing_switches(topology);
    for (const CollectiveKind kind : all_collective_kinds) {
      const Collective collective = collective_on(topology, kind, random);
      const auto bound = compute_bound(topology, collective);
      for (const Planner& planner : all_planners()) {
        SCOPED_TRACE(std::string(planner.name) + " " + std::string(to_string(kind)));
        const auto schedule = plan_unbounded(topology, collective, planner);
        if (!bound) {
          ASSERT_FALSE(schedule);
          continue;
        }
        const bool is_flat = planner.name == "flat" && (some_relay || kind != CollectiveKind::all_reduce);
        const bool must_answer = !computes && (is_flat || is_exact(planner, kind, some_relay));
        if (!schedule) {
          EXPECT_FALSE(must_answer) << schedule.error().message;
          continue;
        }
        if (schedule->relays.empty()) expect_no_relaying(topology, *schedule);
        const Rational time = compute_loads(*schedule, topology).time_per_byte;
        EXPECT_GE(time, bound->time_per_byte);
        exchanged += planner.name == "oneshot" || (!some_relay && kind == CollectiveKind::all_reduce) ? 1 : 0;
        if (computes || !is_exact(planner, kind, some_relay)) continue;
        EXPECT_EQ(time, bound->time_per_byte) << bound->what;
        ++reached;
      }
    }
  }
  EXPECT_GT(reached, 200);
  EXPECT_GT(exchanged, 20);
}

/// Letting all of them relay makes nothing slower.
TEST(NotRelaying, CostsTime) {
  Random random(73);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_network(random, {6, 2, 9, true});
    if (find_unreachable(topology)) continue;
    std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
    for (Node& node : nodes) node.relay = true;
    const Topology free = *Topology::make("all-relay", nodes, {topology.links().begin(), topology.links().end()});
    for (const CollectiveKind kind : all_collective_kinds) {
      const Collective collective = collective_on(topology, kind, random);
      const auto bound = compute_bound(topology, collective);
      if (!bound) continue;
      EXPECT_GE(bound->time_per_byte, compute_bound(free, collective)->time_per_byte) << to_string(kind);
    }
  }
}

}  // namespace
}  // namespace espalier::planners
