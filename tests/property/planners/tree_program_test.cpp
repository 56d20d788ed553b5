#include <gtest/gtest.h>

#include "planners/bounds/cut_bound.h"
#include "planners/lp/trees/tree_images.h"
#include "planners/packing/find/finders.h"
#include "planners/planning_problem.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

Rational best_rate(const Topology& topology, bool symmetric, bool inward) {
  const OrbitGraph orbits = make_orbit_graph(topology, false, symmetric ? Symmetry::any : Symmetry::none);
  const TreeOracle oracle(orbits, sharded_groups(orbits, inward));
  const ColumnSolution solution = generate_columns(oracle.program(), oracle, {.shallow = symmetric});
  EXPECT_TRUE(solution.attained);
  return solution.limit * orbits.graph.unit;
}

/// The trees keep the promise and load no link past the bound.
void expect_optimal(const Topology& topology) {
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const bool inward = direction == Direction::reversed;
    const auto kind = inward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
    const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
    const PlanContext context;
    const PlanningProblem planning(topology);
    const PackingProblem problem = make_problem(planning, direction, Rank(), {}, context);
    auto trees = std::ranges::find(finders(), "program", &Finder::name)->propose(problem, {});
    ASSERT_TRUE(trees);
    Forest forest;
    (inward ? forest.in_trees : forest.out_trees) = *std::move(trees);
    const auto schedule = schedule_from_trees(collective, topology, "packing", forest);
    ASSERT_TRUE(schedule) << schedule.error().message;
    const VerifyReport report = verify(*schedule, topology, 3);
    ASSERT_TRUE(report.ok()) << report.breaches.front().message;
    EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, cut_bound(topology, collective)->time_per_byte);
  }
}

TEST(ProgramTrees, ReachTheBoundOnRandomGraphs) {
  Random random(31);
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random({.ranks = random.between(2, 9),
                                                .switches = random.between(0, 3),
                                                .extra = random.between(0, 12),
                                                .one_way = round % 2 == 0,
                                                .seed = random.next()});
    expect_optimal(topology);
  }
}

/// However soon a search ends, its prices prove a limit: no packing is better, and dividing by it is safe.
TEST(ProgramTrees, EverySearchProvesALimit) {
  Random random(33);
  for (int round = 0; round < 60; ++round) {
    const Topology topology = *generate_random({.ranks = random.between(2, 9),
                                                .switches = random.between(0, 3),
                                                .extra = random.between(0, 12),
                                                .one_way = round % 2 == 0,
                                                .seed = random.next()});
    const OrbitGraph orbits = make_orbit_graph(topology, false, Symmetry::any);
    for (const TreeGroups& groups : {sharded_groups(orbits, false), all_reduce_groups(orbits)}) {
      const TreeOracle oracle(orbits, groups);
      const ColumnSolution best = generate_columns(oracle.program(), oracle, {});
      ASSERT_TRUE(best.attained) << round;
      for (const std::uint32_t rounds : {0U, 1U, 2U, 5U}) {
        for (const bool shallow : {false, true}) {
          const ColumnLimits limits{.rounds = rounds, .warm_rounds = 1, .shallow = shallow};
          const ColumnSolution soon = generate_columns(oracle.program(), oracle, limits);
          EXPECT_GE(soon.limit, best.limit) << round << ", " << rounds << " rounds" << (shallow ? ", shallow" : "");
          EXPECT_FALSE(soon.prices.empty());
        }
      }
    }
  }
}

TEST(ProgramTrees, ReachTheBoundOnRegularNetworks) {
  const std::vector<Topology> networks = {
      *generate_torus({{3, 4}, {}}), *generate_hypercube({.dimensions = 4}),
      *generate_mesh({{3, 3}, {}}),  *generate_leaf_spine({}),
      *generate_rail_boxes({}),      *generate_dragonfly({.routers = 2, .ranks = 1}),
      *generate_fat_tree({.k = 4}),  *generate_ring({.ranks = 9, .one_way = true})};
  for (const Topology& topology : networks) {
    SCOPED_TRACE(topology.name());
    expect_optimal(topology);
  }
}

/// Symmetry makes the program smaller and changes nothing else.
TEST(ProgramTrees, SymmetryChangesNoOptimum) {
  Random random(32);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    // Two copies of a random graph, joined rank by rank: at least one automorphism swaps them.
    const test::PlainGraph half = test::random_graph(random, {4, 2, 5, true});
    test::PlainGraph both;
    both.ranks = 2 * half.ranks;
    both.switches = 2 * half.switches;
    const auto place = [&](std::size_t node, std::size_t copy) {
      return node < half.ranks ? node + copy * half.ranks : both.ranks + (node - half.ranks) + copy * half.switches;
    };
    for (std::size_t copy = 0; copy < 2; ++copy) {
      for (const auto& edge : half.edges) {
        both.edges.push_back({place(edge.tail, copy), place(edge.head, copy), edge.capacity});
      }
      for (std::size_t rank = 0; rank < half.ranks; ++rank) {
        both.edges.push_back({place(rank, copy), place(rank, 1 - copy), 1});
      }
    }
    const Topology topology = test::make_topology(both);
    for (const bool inward : {false, true}) {
      EXPECT_EQ(best_rate(topology, true, inward), best_rate(topology, false, inward));
    }
  }
}

}  // namespace
}  // namespace espalier::planners
