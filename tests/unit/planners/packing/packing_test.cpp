#include "planners/packing/packing.h"

#include <gtest/gtest.h>

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

TEST(Packing, RefusesNumbersPast64Bits) {
  PlainGraph graph = star(4, 999'999'999'999'999'989);
  graph.edges[2].capacity = graph.edges[3].capacity = 999'999'999'999'999'967;
  const auto schedule = plan_packing(make_topology(graph, 1), {CollectiveKind::all_gather, 4, Rank()});
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().code, ErrorCode::too_large);
}

}  // namespace
}  // namespace espalier::planners
