#include <gtest/gtest.h>

#include "planners/bounds/cut_bound.h"
#include "planners/planning_problem.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::unit;

Rational time_of(const Topology& topology, CollectiveKind kind, Rank root = Rank()) {
  const auto bound = cut_bound(topology, {kind, static_cast<std::uint32_t>(topology.rank_count()), root});
  EXPECT_TRUE(bound) << bound.error().message;
  return bound ? bound->time_per_byte : Rational(-1);
}

/// Every optimum of tests/data/planner_cases.json, as a fraction. The time of one unit per rank is N S-times per unit.
TEST(CutBoundCases, AllGatherAndReduceScatterEqualTheOptimum) {
  int compared = 0;
  for (const test::PlannerCase& known : test::read_planner_cases()) {
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    if (!known.find("all_gather")) {
      EXPECT_FALSE(cut_bound(topology, {CollectiveKind::all_gather, 4, Rank()}));
      continue;
    }
    const Rational scale = Rational(1) / (unit * topology.rank_count());
    EXPECT_EQ(time_of(topology, CollectiveKind::all_gather), *known.find("all_gather") * scale);
    EXPECT_EQ(time_of(topology, CollectiveKind::reduce_scatter), *known.find("reduce_scatter") * scale);
    ++compared;
  }
  EXPECT_EQ(compared, 117);
}

TEST(CutBoundCases, BroadcastAndReduceEqualTheOptimumFromEveryRoot) {
  for (const test::PlannerCase& known : test::read_planner_cases(128)) {
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    for (const auto& [key, rates] : known.rate_of_root) {
      const CollectiveKind kind = *parse_collective(key);
      for (std::size_t root = 0; root < rates.size(); ++root) {
        EXPECT_EQ(time_of(topology, kind, Rank(root)), Rational(1) / (Rational(rates[root]) * unit)) << key << root;
      }
    }
  }
}

/// Floors stay below the best known schedules, and the sum of the two halves is what the data says.
TEST(CutBoundCases, AllReduceFloorsStayBelowTheOptimum) {
  for (const test::PlannerCase& known : test::read_planner_cases(128)) {
    SCOPED_TRACE(known.name);
    if (!known.find("rs_ag")) continue;
    const auto floors = all_reduce_floors(test::make_topology(known.graph, unit));
    ASSERT_TRUE(floors);
    EXPECT_EQ(floors->reduce_scatter_all_gather * unit, *known.find("rs_ag"));
    EXPECT_LE(floors->best().time_per_byte * unit, *known.find("rs_ag"));
    if (const auto best = known.find("all_reduce")) {
      EXPECT_LE(floors->best().time_per_byte * unit, *best);
    }
    if (const auto best = known.find("all_reduce_in_network")) {
      EXPECT_LE(floors->smallest_cut.time_per_byte * unit, *best);
    }
  }
}

}  // namespace
}  // namespace espalier::planners
