#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "planners/packing/packing.h"
#include "schedule/schedule_shape.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

/// The most cables that a rank has: at least so many routed trees lead to it where all of them are needed.
std::size_t max_cables(const test::PlainGraph& graph) {
  std::vector<std::size_t> out(graph.ranks, 0);
  for (const auto& edge : graph.edges) {
    if (edge.tail < graph.ranks) ++out[edge.tail];
  }
  return *std::max_element(out.begin(), out.end());
}

/// Routed trees of a root, each with its own links.
TEST(FewRoutedTreesProperty, AtMostSixteenUnlessARankHasMoreCables) {
  for (const test::PlannerCase& known : test::read_planner_cases(80)) {
    if (!known.find("all_gather") || known.graph.ranks == 1) continue;
    SCOPED_TRACE(known.name);
    const Topology topology = test::make_topology(known.graph);
    const std::size_t cables = max_cables(known.graph);
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::broadcast, CollectiveKind::reduce}) {
      const auto collective =
          make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(0)) : std::nullopt);
      const auto schedule = plan_packing(topology, *collective);
      ASSERT_TRUE(schedule) << schedule.error().message;
      const std::size_t most = has_root(kind) ? std::max<std::size_t>(16, cables) : 16;
      EXPECT_LE(measure_shape(*schedule).routed_trees_per_root, most);
    }
  }
}

}  // namespace
}  // namespace espalier::planners
