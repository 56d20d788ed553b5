#include <gtest/gtest.h>

#include "planners/bounds/cut_bound.h"
#include "planners/packing/packing.h"
#include "planners/packing/pruned_packing.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::unit;

/// The exact time of a verified packing.
Rational packed_time(const Topology& topology, CollectiveKind kind) {
  const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
  const auto schedule = plan_packing(topology, *collective);
  EXPECT_TRUE(schedule) << schedule.error().message;
  if (!schedule) return Rational(-1);
  const VerifyReport report = verify(*schedule, topology);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  return compute_loads(*schedule, topology).time_per_byte;
}

TEST(PackingCases, AllGatherAndReduceScatterReachTheOptimum) {
  for (const test::PlannerCase& known : test::read_planner_cases(32)) {
    SCOPED_TRACE(known.name);
    if (!known.find("all_gather")) continue;
    const Topology topology = test::make_topology(known.graph, unit);
    const Rational scale = Rational(1) / (unit * topology.rank_count());
    EXPECT_EQ(packed_time(topology, CollectiveKind::all_gather), *known.find("all_gather") * scale);
    EXPECT_EQ(packed_time(topology, CollectiveKind::reduce_scatter), *known.find("reduce_scatter") * scale);
  }
}

TEST(PackingCases, BroadcastAndReduceReachTheOptimum) {
  for (const test::PlannerCase& known : test::read_planner_cases(32)) {
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    for (const auto& [key, rates] : known.rate_of_root) {
      EXPECT_EQ(packed_time(topology, *parse_collective(key)), Rational(1) / (Rational(rates[0]) * unit)) << key;
    }
  }
}

/// So many trees of one unit per rank fit into floor(U b) of every link, and no smaller U has room for them.
TEST(PackingCases, EqualTreesReachTheOptimumOfTheirNumber) {
  for (const test::PlannerCase& known : test::read_planner_cases(16)) {
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    const auto collective = make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
    const Rational scale = Rational(1) / (unit * topology.rank_count());
    for (const auto& [count, time] : known.equal_trees) {
      const auto schedule = plan_pruned_packing(topology, *collective, {.equal_trees = count});
      ASSERT_TRUE(schedule) << schedule.error().message;
      EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, time / count * scale) << count << " trees";
    }
  }
}

/// Boxes on a fabric are packed in seconds at any size, with trees of a few hops.
TEST(PackingCases, ManyBoxesReachTheOptimum) {
  int packed = 0;
  for (const test::PlannerCase& known : test::read_planner_cases()) {
    const bool boxes = known.name.find("a100_") != std::string::npos || known.name.find("h100_") != std::string::npos;
    if (known.graph.ranks <= 32 || !boxes) continue;
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph, unit);
    const auto schedule =
        plan_packing(topology, {CollectiveKind::all_gather, static_cast<std::uint32_t>(known.graph.ranks), Rank()});
    ASSERT_TRUE(schedule) << schedule.error().message;
    const Rational scale = Rational(1) / (unit * topology.rank_count());
    EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, *known.find("all_gather") * scale);
    ++packed;
  }
  EXPECT_EQ(packed, 11);
}

/// The two halves load links one after the other, so the sum is an upper limit; where the halves are full on different
/// links the load is less, but no less than the best known schedule's.
TEST(PackingCases, AllReduceStaysWithinItsHalves) {
  for (const test::PlannerCase& known : test::read_planner_cases(32)) {
    SCOPED_TRACE(known.name);
    if (!known.find("rs_ag")) continue;
    const Rational time = packed_time(test::make_topology(known.graph, unit), CollectiveKind::all_reduce) * unit;
    EXPECT_LE(time, *known.find("rs_ag"));
    if (known.find("all_reduce")) {
      EXPECT_GE(time, *known.find("all_reduce"));
    }
  }
}

}  // namespace
}  // namespace espalier::planners
