#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "tests/support/networks/random_graph.h"

namespace espalier::planners {
namespace {

/// What every planner makes of every collective loads some link for at least as long as the bound says.
void expect_bounds_hold(const Topology& topology, Rank root, int& compared) {
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto collective =
        make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(root) : std::nullopt);
    ASSERT_TRUE(collective);
    const auto bound = compute_bound(topology, *collective);
    ASSERT_TRUE(bound) << bound.error().message;
    for (const Planner& planner : all_planners()) {
      const auto schedule = planner.plan(topology, *collective, {});
      if (!schedule) continue;
      ++compared;
      EXPECT_GE(compute_loads(*schedule, topology).time_per_byte, bound->time_per_byte)
          << planner.name << " " << to_string(kind) << ": " << bound->what;
    }
  }
}

TEST(Bound, NoScheduleBeatsIt) {
  Random random(31);
  int compared = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph = test::random_graph(random, {6, 3, 9, round % 2 == 0});
    const Topology plain = test::make_topology(graph);
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (round % 4 == 3 && random.below(3) == 0) node.bandwidth = {random.between(1, 20) * 1'000'000'000};
    }
    const auto topology = Topology::make("random", nodes, {plain.links().begin(), plain.links().end()});
    ASSERT_TRUE(topology);
    expect_bounds_hold(*topology, Rank(random.below(graph.ranks)), compared);
  }
  EXPECT_GT(compared, 2'000);
}

}  // namespace
}  // namespace espalier::planners
