#include <gtest/gtest.h>

#include "planners/innetwork/innetwork.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/computing.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::unit;

/// The optimum where every switch copies and adds, worked out independently, against the plans made for that.
TEST(InNetworkCases, AllReduceStaysAboveTheOptimumAndMostlyReachesIt) {
  int cases = 0;
  int reached = 0;
  for (const test::PlannerCase& known : test::read_planner_cases(72)) {
    const auto best = known.find("all_reduce_in_network");
    if (!best || known.graph.switches == 0) continue;
    SCOPED_TRACE(known.name);
    const Topology topology = test::with_computing_switches(test::make_topology(known.graph, unit));
    const auto collective = make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    const auto schedule = plan_innetwork(topology, *collective);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology).ok());
    const Rational time = compute_loads(*schedule, topology).time_per_byte * unit;
    const double ratio = to_double(time / *best);
    ++cases;
    EXPECT_GE(time, *best);
    EXPECT_LE(ratio, 1.01);
    if (time == *best) ++reached;
  }
  EXPECT_GE(cases, 48);
  EXPECT_GE(10 * reached, 9 * cases) << reached << " of " << cases;
}

}  // namespace
}  // namespace espalier::planners
