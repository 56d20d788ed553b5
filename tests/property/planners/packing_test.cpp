#include "planners/packing/packing.h"

#include <gtest/gtest.h>

#include "planners/bounds/cut_bound.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"

namespace espalier::planners {
namespace {

constexpr std::array reach_the_bound = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                        CollectiveKind::broadcast,  CollectiveKind::reduce,
                                        CollectiveKind::gather,     CollectiveKind::scatter};

/// The packing's exact time over the bound; the schedule must verify.
Rational over_bound(const Topology& topology, CollectiveKind kind, std::size_t root) {
  const auto collective =
      make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(root)) : std::nullopt);
  const auto schedule = plan_packing(topology, *collective);
  EXPECT_TRUE(schedule) << schedule.error().message;
  if (!schedule) return Rational(-1);
  const VerifyReport report = verify(*schedule, topology);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  return compute_loads(*schedule, topology).time_per_byte / cut_bound(topology, *collective)->time_per_byte;
}

TEST(PackingProperty, ReachesTheBoundWhereSwitchesAreBalanced) {
  Random random(21);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {8, 4, round % 3 == 0 ? 3 : 20, true});
    const Topology topology = test::make_topology(graph, 1);
    for (const CollectiveKind kind : reach_the_bound) {
      ASSERT_EQ(over_bound(topology, kind, random.below(graph.ranks)), 1) << to_string(kind);
    }
  }
}

TEST(PackingProperty, StaysHonestWhereTheyAreNot) {
  Random random(22);
  int reached = 0, tried = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {6, 4, 20, false});
    const Topology topology = test::make_topology(graph, 1);
    for (const CollectiveKind kind : reach_the_bound) {
      const Rational ratio = over_bound(topology, kind, random.below(graph.ranks));
      ASSERT_GE(ratio, 1) << to_string(kind);
      // A flow needs no balance.
      if (kind == CollectiveKind::gather || kind == CollectiveKind::scatter) {
        ASSERT_EQ(ratio, 1);
      }
      reached += ratio == 1 ? 1 : 0;
      ++tried;
    }
  }
  RecordProperty("reached_of_" + std::to_string(tried), reached);
}

TEST(PackingProperty, SameInputSameSchedule) {
  Random random(23);
  for (int round = 0; round < 20; ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 4, 20, true}), 1);
    const auto collective = make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
    const auto first = plan_packing(topology, *collective);
    const auto second = plan_packing(topology, *collective);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->slices, second->slices);
    EXPECT_EQ(first->transfers, second->transfers);
  }
}

}  // namespace
}  // namespace espalier::planners
