#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/damage/failures.h"
#include "planners/lp/trees/tree_memory.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

/// Plans what each single failure leaves, from nothing and from the trees of the whole: the bounds are equal, and both
/// schedules reach it alike.
void expect_no_difference(const Topology& topology, CollectiveKind kind, const std::string& planner_name) {
  const Planner planner = *find_planner(planner_name);
  const auto collective_on = [&](const Topology& network) {
    return *make_collective(kind, network.rank_count(), has_root(kind) ? std::optional(Rank(0)) : std::nullopt);
  };
  TreeMemory whole;
  const auto healthy = plan(topology, collective_on(topology), planner);
  ASSERT_TRUE(healthy);
  whole.keep(topology, *healthy);
  for (const Failure& failure : single_failures(topology, {true, has_root(kind) ? Rank(0) : Rank()})) {
    const auto rest = without(topology, failure.parts, failure.name);
    if (!rest) continue;
    SCOPED_TRACE(topology.name() + " without " + failure.name + ", " + std::string(to_string(kind)));
    PlanContext context;
    context.known = &whole;
    const auto cold = plan(*rest, collective_on(*rest), planner);
    const auto warm = plan(*rest, collective_on(*rest), planner, context);
    ASSERT_EQ(cold.has_value(), warm.has_value());
    if (!cold) continue;
    EXPECT_TRUE(verify(*warm, *rest, 3).ok());
    EXPECT_EQ(cold->bound->time_per_byte, warm->bound->time_per_byte);
    // Weights are rounded where their denominators are long (program_forest.h): by 2^-30 of a root's part per tree.
    const Rational ratio = compute_loads(*warm, *rest).time_per_byte / compute_loads(*cold, *rest).time_per_byte;
    EXPECT_NEAR(to_double(ratio), 1, 1e-7);
  }
}

TEST(KnownTrees, ChangeNoOptimumOfAnySingleFailure) {
  const std::vector<Topology> machines = {*generate_hypercube({.dimensions = 3}), *generate_torus({.dims = {3, 3}}),
                                          *generate_leaf_spine({.leaves = 2, .ranks_per_leaf = 3, .spines = 2})};
  for (const Topology& machine : machines) {
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
      expect_no_difference(machine, kind, "packing");
    }
    expect_no_difference(machine, CollectiveKind::all_reduce, "lp");
  }
}

TEST(KnownTrees, ChangeNoOptimumOnRandomGraphs) {
  Random random(71);
  for (int round = 0; round < 15; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random({.ranks = random.between(3, 7),
                                                .switches = random.between(0, 3),
                                                .extra = random.between(2, 12),
                                                .one_way = round % 2 == 0,
                                                .seed = random.next()});
    expect_no_difference(topology, CollectiveKind::all_gather, "packing");
    expect_no_difference(topology, CollectiveKind::all_reduce, "lp");
  }
}

}  // namespace
}  // namespace espalier::planners
