#include <gtest/gtest.h>

#include "planners/all_reduce_forest.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/flow_bound.h"
#include "schedule/loads.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::unit;

/// Every optimum of tests/data/planner_cases.json that is known, as a fraction.
TEST(ProgramBoundCases, AllReduceEqualsTheOptimum) {
  int compared = 0;
  for (const test::PlannerCase& known : test::read_planner_cases(64)) {
    if (!known.find("all_reduce")) continue;
    SCOPED_TRACE(known.name);
    const auto bounds = all_reduce_bounds(test::make_topology(known.graph, unit));
    ASSERT_TRUE(bounds);
    EXPECT_EQ(bounds->best.time_per_byte * unit, *known.find("all_reduce"));
    EXPECT_TRUE(bounds->optimal_in_class);
    ++compared;
  }
  EXPECT_EQ(compared, 90);
}

/// The trees behind the figure: a schedule whose fullest link takes exactly that long wherever that beats
/// reduce-scatter
/// + all-gather. Elsewhere some solutions have denominators past 2^60 and are rounded.
TEST(ProgramBoundCases, AllReduceForestsReachTheOptimum) {
  for (const test::PlannerCase& known : test::read_planner_cases(32)) {
    if (!known.find("all_reduce")) continue;
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    const auto forest = all_reduce_forest(topology);
    ASSERT_TRUE(forest) << forest.error().message;
    const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    const auto schedule = schedule_from_trees(collective, topology, "forest", *forest);
    ASSERT_TRUE(schedule) << schedule.error().message;
    const Rational reached = compute_loads(*schedule, topology).time_per_byte * unit;
    const Rational best = *known.find("all_reduce");
    EXPECT_GE(reached, best);
    EXPECT_LE(reached, best * (best < *known.find("rs_ag") ? Rational(1) : make_rational(10'000'001, 10'000'000)));
  }
}

TEST(ProgramBoundCases, AllToAllEqualsTheOptimum) {
  int compared = 0;
  for (const test::PlannerCase& known : test::read_planner_cases(64)) {
    if (!known.find("all_to_all")) continue;
    SCOPED_TRACE(known.name);
    const auto bound = all_to_all_bound(test::make_topology(known.graph, unit));
    ASSERT_TRUE(bound);
    EXPECT_EQ(bound->bound.time_per_byte * unit * known.graph.ranks, *known.find("all_to_all"));
    ++compared;
  }
  EXPECT_EQ(compared, 90);
}

}  // namespace
}  // namespace espalier::planners
