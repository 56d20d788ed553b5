#include "planners/all_reduce_forest.h"

#include <gtest/gtest.h>

#include "planners/all_reduce_bound.h"
#include "schedule/loads.h"
#include "schedule/verify.h"
#include "tests/support/random_graph.h"

namespace espalier {
namespace {

/// The forest's schedule keeps all_reduce's promise and takes exactly as long as the bound says.
void expect_reaches_bound(const Topology& topology) {
  const auto forest = all_reduce_forest(topology);
  ASSERT_TRUE(forest) << forest.error().message;
  const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
  const auto schedule = schedule_from_trees(collective, topology, "forest", *forest);
  ASSERT_TRUE(schedule) << schedule.error().message;
  const VerifyReport report = verify(*schedule, topology, 3);
  ASSERT_TRUE(report.ok()) << report.breaches.front().message;
  const auto bounds = all_reduce_bounds(topology);
  ASSERT_TRUE(bounds);
  EXPECT_TRUE(bounds->optimal_in_class);
  EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, bounds->best.time_per_byte);
}

TEST(AllReduceForest, ReachesTheBoundOnRandomGraphs) {
  Random random(21);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph = test::random_graph(random, {7, 3, 6, round % 3 != 0});
    if (round % 2 == 0) {
      const std::vector<test::PlainGraph::Edge> edges = graph.edges;
      for (const auto& edge : edges) graph.edges.push_back({edge.head, edge.tail, edge.capacity});
    }
    expect_reaches_bound(test::make_topology(graph, 1'000'000'000));
  }
}

TEST(AllReduceForest, ReachesTheBoundWithBackplanes) {
  Random random(22);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology plain = test::make_topology(test::random_graph(random, {5, 3, 6, true}), 1'000'000'000);
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (random.below(2) == 0) node.bandwidth = {random.between(1, 20) * 1'000'000'000};
    }
    const auto limited = Topology::make("limited", nodes, {plain.links().begin(), plain.links().end()});
    ASSERT_TRUE(limited);
    expect_reaches_bound(*limited);
  }
}

/// Rates without a common divisor: weights are rounded, which costs at most about one part in 2^30 per tree.
TEST(AllReduceForest, RoundsWeightsThatAreTooFine) {
  Random random(23);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const test::PlainGraph graph = test::random_graph(random, {8, 2, 400'000'000'000, true});
    const Topology topology = test::make_topology(graph, 1);
    const auto forest = all_reduce_forest(topology);
    ASSERT_TRUE(forest) << forest.error().message;
    const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    const auto schedule = schedule_from_trees(collective, topology, "forest", *forest);
    ASSERT_TRUE(schedule) << schedule.error().message;
    const Rational best = all_reduce_bounds(topology)->best.time_per_byte;
    const Rational reached = compute_loads(*schedule, topology).time_per_byte;
    EXPECT_GE(reached, best);
    EXPECT_LE(reached, best * make_rational(10'000'001, 10'000'000));
  }
}

TEST(AllReduceForest, RefusesWhatItCannotDo) {
  EXPECT_EQ(all_reduce_forest(test::make_topology({1, 0, {}})).error().code, ErrorCode::unsupported);
  EXPECT_EQ(all_reduce_forest(test::make_topology({2, 0, {{0, 1, 1}}})).error().code, ErrorCode::infeasible);
  test::PlainGraph ring{65, 0, {}};
  for (std::size_t i = 0; i < 65; ++i) ring.edges.push_back({i, (i + 1) % 65, 1});
  EXPECT_EQ(all_reduce_forest(test::make_topology(ring)).error().code, ErrorCode::too_large);
}

}  // namespace
}  // namespace espalier
