#include "planners/packing/packing.h"

#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/bounds/cut_bound.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::make_topology;
using test::PlainGraph;

Schedule planned(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  const auto collective = make_collective(kind, topology.rank_count(), root);
  const auto schedule = plan_packing(topology, *collective);
  EXPECT_TRUE(schedule) << schedule.error().message;
  const VerifyReport report = verify(*schedule, topology);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  return *schedule;
}

Rational load(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  return compute_loads(planned(topology, kind, root), topology).time_per_byte;
}

PlainGraph star(std::size_t ranks, std::int64_t capacity) {
  PlainGraph graph{ranks, 1, {}};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    graph.edges.push_back({rank, ranks, capacity});
    graph.edges.push_back({ranks, rank, capacity});
  }
  return graph;
}

TEST(Packing, OneSwitchNeedsOneHop) {
  const Topology topology = make_topology(star(8, 10), 1);
  const Schedule schedule = planned(topology, CollectiveKind::all_gather);
  // Each rank takes in seven shards of S/8 at 10, each straight from its owner.
  EXPECT_EQ(compute_loads(schedule, topology).time_per_byte, make_rational(7, 80));
  EXPECT_EQ(schedule.transfers.size(), 8U * 7U);
  EXPECT_EQ(schedule.channel_count(), 8U);
}

TEST(Packing, BroadcastLeavesTheRootOnce) {
  const Topology topology = make_topology(star(8, 7), 1);
  const Schedule schedule = planned(topology, CollectiveKind::broadcast, Rank(3));
  // S leaves the root once.
  EXPECT_EQ(compute_loads(schedule, topology).time_per_byte, make_rational(1, 7));
}

TEST(Packing, AllReduceIsBothHalvesOnAGoodMachine) {
  const Topology topology = make_topology(star(4, 10), 1);
  EXPECT_EQ(load(topology, CollectiveKind::all_reduce), make_rational(6, 40));
}

TEST(Packing, AllReduceSparesAWeakRank) {
  // A line of three: the middle rank adds and gives back, S each way on both cables, where the halves' roots at the
  // ends would take 4/3 S.
  const Topology topology = make_topology({3, 0, {{0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}}}, 1);
  EXPECT_EQ(load(topology, CollectiveKind::all_reduce), 1);
}

TEST(Packing, TwoRanksAndParallelOneWayLinks) {
  const Topology topology = make_topology({2, 0, {{0, 1, 3}, {0, 1, 4}, {1, 0, 5}}}, 1);
  EXPECT_EQ(load(topology, CollectiveKind::all_gather), make_rational(1, 10));
  EXPECT_EQ(load(topology, CollectiveKind::reduce_scatter), make_rational(1, 10));
  EXPECT_EQ(load(topology, CollectiveKind::broadcast, Rank(0)), make_rational(1, 7));
  EXPECT_EQ(load(topology, CollectiveKind::reduce, Rank(0)), make_rational(1, 5));
}

TEST(Packing, GathersAndScattersThroughRelays) {
  // Rank 2 reaches rank 0 at 1 directly and at 3 through rank 1, whose own shard needs the same link.
  const Topology topology = make_topology({3, 0, {{2, 0, 1}, {2, 1, 3}, {1, 0, 3}, {0, 1, 5}, {0, 2, 5}}}, 1);
  // Two shards of S/3 enter rank 0 at 4.
  EXPECT_EQ(load(topology, CollectiveKind::gather, Rank(0)), make_rational(2, 12));
  // Straight from the root: S/3 at 5 each; no other way into rank 2, so not faster than 5.
  EXPECT_EQ(load(topology, CollectiveKind::scatter, Rank(0)), make_rational(1, 15));
}

TEST(Packing, OneRankMovesNothing) {
  const Topology topology = make_topology({1, 0, {}});
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce,
        CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter}) {
    EXPECT_TRUE(planned(topology, kind).transfers.empty());
  }
}

TEST(Packing, RefusesWhatTravelsBetweenPairs) {
  const Topology topology = make_topology(star(4, 10));
  for (const CollectiveKind kind : {CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    const auto schedule = plan_packing(topology, *make_collective(kind, 4, std::nullopt));
    ASSERT_FALSE(schedule);
    EXPECT_EQ(schedule.error().code, ErrorCode::unsupported);
    EXPECT_NE(schedule.error().help.find("pairwise"), std::string::npos);
  }
}

TEST(Packing, NamesUnreachableRanks) {
  const auto schedule = plan_packing(make_topology({2, 0, {{0, 1, 1}}}), {CollectiveKind::all_gather, 2, Rank()});
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().code, ErrorCode::infeasible);
  EXPECT_EQ(schedule.error().message, "rank r1 cannot reach rank r0");
}

/// A switch that takes in 1 from the root and gives 1 to each of two ranks cannot copy: half the cut's rate.
TEST(Packing, IsHonestWhereASwitchCannotCopy) {
  const Topology topology = make_topology({3, 1, {{0, 3, 1}, {3, 1, 1}, {3, 2, 1}, {1, 0, 9}, {2, 0, 9}}}, 1);
  const Collective collective{CollectiveKind::broadcast, 3, Rank(0)};
  EXPECT_EQ(cut_bound(topology, collective)->time_per_byte, 1);
  EXPECT_EQ(load(topology, CollectiveKind::broadcast, Rank(0)), 2);
}

/// Nodes that let so much pass in all, 0 for no limit.
Topology with_backplanes(const PlainGraph& graph, const std::vector<std::int64_t>& rates) {
  const Topology plain = make_topology(graph, 1);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  for (std::size_t i = 0; i < rates.size(); ++i) nodes[i].bandwidth = {rates[i]};
  return *Topology::make("backplanes", std::move(nodes), {plain.links().begin(), plain.links().end()});
}

/// The bound, which is no floor and which the packing reaches.
Rational reached_bound(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  const auto bound = compute_bound(topology, *make_collective(kind, topology.rank_count(), root));
  EXPECT_TRUE(bound);
  EXPECT_FALSE(bound->is_floor) << bound->what;
  EXPECT_EQ(load(topology, kind, root), bound->time_per_byte) << to_string(kind);
  return bound->time_per_byte;
}

TEST(Packing, ReachesTheOptimumThroughSwitchesOfUnlikeRates) {
  // Ranks 0 to 4, switches 5 and 6. Ranks 0 and 2 are behind switch 5, so 2 S pass it; 1 enters it from rank 4 and 2
  // from switch 6: 3 in all. No cut is below 2.
  const PlainGraph graph{
      5,
      2,
      {{4, 1, 2}, {4, 5, 1}, {1, 3, 2}, {3, 6, 1}, {2, 6, 1}, {6, 5, 2}, {5, 0, 2}, {5, 2, 2}, {5, 4, 9}, {0, 4, 1}}};
  const Topology topology = make_topology(graph, 1);
  EXPECT_EQ(cut_bound(topology, {CollectiveKind::broadcast, 5, Rank(4)})->time_per_byte, make_rational(1, 2));
  EXPECT_EQ(reached_bound(topology, CollectiveKind::broadcast, Rank(4)), make_rational(2, 3));
  reached_bound(topology, CollectiveKind::all_gather);
  reached_bound(topology, CollectiveKind::reduce_scatter);
}

TEST(Packing, SharesABackplaneBetweenWhatEntersAndLeaves) {
  // Rank 2 is behind rank 1, whose backplane has 5, and switch 3 behind both.
  const PlainGraph graph{
      3, 1, {{0, 1, 6}, {1, 0, 6}, {1, 2, 5}, {2, 1, 5}, {1, 3, 2}, {3, 1, 2}, {2, 3, 3}, {3, 2, 3}}};
  const Topology topology = with_backplanes(graph, {10, 5, 0, 8});
  // All S enter rank 1 and leave it.
  EXPECT_EQ(reached_bound(topology, CollectiveKind::broadcast, Rank(0)), make_rational(2, 5));
  EXPECT_EQ(reached_bound(topology, CollectiveKind::reduce, Rank(0)), make_rational(2, 5));
  // Rank 1's own shard is in its backplane once and rank 2's twice.
  EXPECT_EQ(reached_bound(topology, CollectiveKind::gather, Rank(0)), make_rational(1, 5));
  EXPECT_EQ(reached_bound(topology, CollectiveKind::scatter, Rank(0)), make_rational(1, 5));
  // Two shards enter rank 1; it sends one on to rank 2, the other on to rank 0, and its own to both: six of S/3.
  EXPECT_EQ(reached_bound(topology, CollectiveKind::all_gather), make_rational(6, 15));
}

TEST(Packing, SharesBackplanesAmongTheRanksThatPassOn) {
  // Four ranks of backplane 30 with links of 25 both ways. A broadcast is received and sent three times; the root sends
  // 25 at most, so 6 S fit into 3 x 30 + 25. All_gather: N-1 shards enter a rank, and N-1 leave one on the mean.
  const Topology topology = with_backplanes(star(4, 25), {30, 30, 30, 30});
  EXPECT_EQ(reached_bound(topology, CollectiveKind::broadcast, Rank(0)), make_rational(6, 115));
  EXPECT_EQ(reached_bound(topology, CollectiveKind::all_gather), make_rational(6, 120));
  // The root's link.
  EXPECT_EQ(reached_bound(topology, CollectiveKind::gather, Rank(0)), make_rational(3, 100));
}

TEST(Packing, TrimsASwitchThatTakesInMoreThanItGivesOut) {
  // Rank 0 has twice the rate into the switch that any rank has out of it.
  PlainGraph graph = star(4, 10);
  graph.edges.front().capacity = 20;
  const Topology topology = make_topology(graph, 1);
  EXPECT_EQ(load(topology, CollectiveKind::all_gather), make_rational(3, 40));
}

TEST(Packing, HoldsRatesWithoutACommonDivisor) {
  PlainGraph graph = star(4, 1'000'000'007);
  graph.edges[2].capacity = graph.edges[3].capacity = 999'999'937;
  const Topology topology = make_topology(graph, 1);
  const Collective collective{CollectiveKind::all_gather, 4, Rank()};
  EXPECT_EQ(load(topology, CollectiveKind::all_gather), cut_bound(topology, collective)->time_per_byte);
}

/// Weights of trees do not fit: of a root trees are refused, of all roots one each carries as much.
TEST(Packing, NumbersPast64BitsAreRefusedOrPackedByEqualTrees) {
  PlainGraph graph = star(4, 999'999'999'999'999'989);
  graph.edges[2].capacity = graph.edges[3].capacity = 999'999'999'999'999'967;
  const Topology topology = make_topology(graph, 1);
  const auto of_one = plan_packing(topology, {CollectiveKind::broadcast, 4, Rank(1)});
  ASSERT_FALSE(of_one);
  EXPECT_EQ(of_one.error().code, ErrorCode::too_large);
  const auto of_all = plan_packing(topology, {CollectiveKind::all_gather, 4, Rank()});
  ASSERT_TRUE(of_all) << of_all.error().message;
  EXPECT_TRUE(verify(*of_all, topology).ok());
  EXPECT_GE(compute_loads(*of_all, topology).time_per_byte,
            cut_bound(topology, {CollectiveKind::all_gather, 4, Rank()})->time_per_byte);
}

}  // namespace
}  // namespace espalier::planners
