#include <gtest/gtest.h>

#include "planners/bounds/cut_bound.h"
#include "planners/packing/packing.h"
#include "schedule/loads.h"
#include "schedule/schedule_shape.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

/// A plan of a collective with one root: verified, at the bound, and of at most 16 trees.
ScheduleShape shape_of_plan(const Topology& topology, CollectiveKind kind, Rank root) {
  const auto collective = make_collective(kind, topology.rank_count(), root);
  const auto schedule = plan_packing(topology, *collective);
  EXPECT_TRUE(schedule) << schedule.error().message;
  if (!schedule) return {};
  const VerifyReport report = verify(*schedule, topology);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, cut_bound(topology, *collective)->time_per_byte);
  const ScheduleShape shape = measure_shape(*schedule);
  EXPECT_LE(shape.trees_per_root, 16U);
  EXPECT_LT(shape.height, topology.rank_count());
  return shape;
}

/// Leaves with as much bandwidth upwards as downwards are like one switch: up to 18 ranks two hops are enough, one to a
/// relay and one to all others, and of three ranks or more one hop is not.
TEST(LowTreesProperty, TwoHopsOnFullFabrics) {
  Random random(71);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const std::int64_t leaves = random.between(2, 4);
    const Topology topology = *generate_leaf_spine({.leaves = leaves,
                                                    .ranks_per_leaf = random.between(2, 16 / leaves),
                                                    .spines = random.between(1, 2),
                                                    .oversubscription = 1});
    const Rank root(random.below(topology.rank_count()));
    for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
      EXPECT_EQ(shape_of_plan(topology, kind, root).height, 2U) << topology.rank_count();
    }
  }
}

TEST(LowTreesProperty, FewAtTheBoundOnRandomFabrics) {
  Random random(72);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {8, 3, 4, true});
    const Topology topology = test::make_topology(graph, 1);
    const auto kind = round % 2 == 0 ? CollectiveKind::broadcast : CollectiveKind::reduce;
    shape_of_plan(topology, kind, Rank(random.below(graph.ranks)));
  }
}

}  // namespace
}  // namespace espalier::planners
