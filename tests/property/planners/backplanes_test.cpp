#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/packing/packing.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/compact_optimum.h"
#include "tests/support/networks/random_graph.h"

// Backplanes of ranks and switches, and switches that take in and give out unlike rates: bounds are the optimum of an
// independent linear program, and packing reaches them.

namespace espalier::planners {
namespace {

Topology with_backplanes(Random& random, const test::RandomGraphOptions& options) {
  const Topology plain = test::make_topology(test::random_graph(random, options));
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  for (Node& node : nodes) {
    if (random.below(2) == 0) node.bandwidth = {random.between(1, 30) * test::unit};
  }
  return *Topology::make("backplanes", std::move(nodes), {plain.links().begin(), plain.links().end()});
}

constexpr std::array planned_kinds = {
    CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce,
    CollectiveKind::gather,     CollectiveKind::scatter,        CollectiveKind::all_reduce};

Collective random_collective(Random& random, CollectiveKind kind, std::size_t ranks) {
  const auto root = has_root(kind) ? std::optional(Rank(random.below(ranks))) : std::nullopt;
  std::vector<std::int64_t> shares;
  if (has_shards(kind) && random.below(3) == 0) {
    for (std::size_t i = 0; i < ranks; ++i) shares.push_back(random.between(0, 3));
    shares.front() += 1;
  }
  return *make_collective(kind, ranks, root, std::move(shares));
}

/// The bound is no floor, it is the optimum, and packing reaches it.
void expect_exact(const Topology& topology, const Collective& collective) {
  SCOPED_TRACE(std::string(to_string(collective.kind)));
  const auto bound = compute_bound(topology, collective);
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_FALSE(bound->is_floor) << bound->what;
  if (bound->time_per_byte == 0) return;  // the root has all of it
  const double optimum = test::compact_optimum(topology, collective);
  EXPECT_NEAR(to_double(bound->time_per_byte) / optimum, 1, 1e-6) << bound->what;
  const auto schedule = plan_packing(topology, collective);
  ASSERT_TRUE(schedule) << schedule.error().message;
  const VerifyReport report = verify(*schedule, topology, 1);
  ASSERT_TRUE(report.ok()) << report.breaches.front().message;
  EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, bound->time_per_byte) << bound->what;
}

TEST(Backplanes, BoundsAreTheOptimumAndPackingReachesThem) {
  Random random(14);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = with_backplanes(random, {5, 3, 20, round % 3 != 0});
    for (const CollectiveKind kind : planned_kinds) {
      expect_exact(topology, random_collective(random, kind, topology.rank_count()));
    }
  }
}

TEST(UnbalancedSwitches, BoundsAreTheOptimumAndPackingReachesThem) {
  Random random(15);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {6, 4, 9, false}));
    for (const CollectiveKind kind : planned_kinds) {
      expect_exact(topology, random_collective(random, kind, topology.rank_count()));
    }
  }
}

}  // namespace
}  // namespace espalier::planners
