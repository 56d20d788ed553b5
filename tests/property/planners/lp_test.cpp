#include "planners/lp/lp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "planners/all_reduce_forest.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/bound.h"
#include "planners/lp/flow_program.h"
#include "planners/lp/single_paths.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

constexpr CollectiveKind kinds[] = {CollectiveKind::all_reduce, CollectiveKind::all_to_all, CollectiveKind::send_recv};

Collective collective_on(const Topology& topology, CollectiveKind kind) {
  return *make_collective(kind, topology.rank_count(), std::nullopt);
}

/// The schedule keeps the collective's promise and takes exactly as long as the bound says; or, where weights had to be
/// rounded, at most `slack` times as long.
void expect_reaches_bound(const Topology& topology, CollectiveKind kind, const Rational& slack = 1) {
  SCOPED_TRACE(to_string(kind));
  const Collective collective = collective_on(topology, kind);
  const auto schedule = plan_lp(topology, collective);
  ASSERT_TRUE(schedule) << schedule.error().message;
  const VerifyReport report = verify(*schedule, topology, 3);
  ASSERT_TRUE(report.ok()) << report.breaches.front().message;
  const auto bound = compute_bound(topology, collective);
  ASSERT_TRUE(bound);
  const Rational reached = compute_loads(*schedule, topology).time_per_byte;
  EXPECT_GE(reached, bound->time_per_byte);
  EXPECT_LE(reached, bound->time_per_byte * slack);
}

TEST(Lp, ReachesTheBoundOnRandomGraphs) {
  Random random(21);
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph = test::random_graph(random, {7, 3, 6, round % 3 != 0});
    if (round % 2 == 0) {
      const std::vector<test::PlainGraph::Edge> edges = graph.edges;
      for (const auto& edge : edges) graph.edges.push_back({edge.head, edge.tail, edge.capacity});
    }
    for (const CollectiveKind kind : kinds) expect_reaches_bound(test::make_topology(graph), kind);
  }
}

TEST(Lp, ReachesTheBoundWithBackplanes) {
  Random random(22);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology plain = test::make_topology(test::random_graph(random, {5, 3, 6, true}));
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (random.below(2) == 0) node.bandwidth = {random.between(1, 20) * 1'000'000'000};
    }
    const auto limited = Topology::make("limited", nodes, {plain.links().begin(), plain.links().end()});
    ASSERT_TRUE(limited);
    for (const CollectiveKind kind : kinds) expect_reaches_bound(*limited, kind);
  }
}

/// Rates without a common divisor: weights are rounded, which costs at most about one part in 2^30 per tree.
TEST(Lp, RoundsWeightsThatAreTooFine) {
  Random random(23);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const test::PlainGraph graph = test::random_graph(random, {8, 2, 400'000'000'000, true});
    for (const CollectiveKind kind : kinds) {
      expect_reaches_bound(test::make_topology(graph, 1), kind, make_rational(10'000'001, 10'000'000));
    }
  }
}

/// A solution that stops at a gap fits, and misses no more of the exact optimum than it says.
TEST(Lp, StopsAtAGap) {
  constexpr double gap = 0.05;
  Random random(24);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 9, true}));
    const FlowDemands flows =
        flow_demands({CollectiveKind::all_to_all, static_cast<std::uint32_t>(topology.rank_count()), Rank()});
    const auto orbits = std::make_shared<const OrbitGraph>(make_orbit_graph(topology, false, Symmetry::none));
    const auto solve = [&](const ColumnLimits& limits) { return solve_flow(orbits, flows, limits).solution; };
    const ColumnSolution exact = solve({});
    const ColumnSolution near = solve({.gap = gap});
    ASSERT_TRUE(exact.attained);
    ASSERT_FALSE(near.parts.empty());
    EXPECT_GE(near.limit, exact.limit);
    EXPECT_LE(near.reached, exact.limit);
    EXPECT_GE(near.reached * make_rational(100'001, 100'000), near.limit * make_rational(90, 100));
    std::vector<Rational> loads(orbits->capacity.size(), 0);
    for (const ColumnSolution::Part& part : near.parts) {
      for (const Entry entry : part.column.loads) loads[entry.index] += part.amount * entry.value;
    }
    for (std::size_t r = 0; r < loads.size(); ++r) EXPECT_LE(loads[r], Rational(orbits->capacity[r]));
  }
}

/// Every column is a tree that takes every block to its rank, its loads are those of the blocks, and at what is said to
/// be reached the fullest resource is just full.
TEST(SinglePaths, TakeEveryBlockAndNoMoreThanFits) {
  Random random(25);
  int whole = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph_of_round = test::random_graph(random, {8, 3, 4, true});
    // Rates from bytes to terabytes a second, too.
    for (auto& edge : graph_of_round.edges) {
      for (std::uint64_t i = round % 3 == 0 ? random.below(13) : 0; i > 0; --i) edge.capacity *= 10;
    }
    const Topology topology = test::make_topology(graph_of_round, 1);
    const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
    const FlowDemands flows = flow_demands({CollectiveKind::all_to_all, ranks, Rank()});
    const auto orbits = std::make_shared<const OrbitGraph>(make_orbit_graph(topology, false, Symmetry::none));
    const FlowProgram program = solve_flow(orbits, flows, {});
    const auto found = find_single_paths(*orbits, program.demands, program.solution.limit);
    ASSERT_TRUE(found);
    EXPECT_LE(found->reached, program.solution.limit);
    if (found->reached == program.solution.limit) ++whole;
    ASSERT_EQ(found->parts.size(), ranks);
    const ResourceGraph& graph = orbits->graph;
    std::vector<Rational> loads(orbits->capacity.size(), 0);
    for (std::uint32_t source = 0; source < ranks; ++source) {
      const ColumnSolution::Part& part = found->parts[source];
      EXPECT_EQ(part.amount, found->reached);
      ASSERT_EQ(part.column.group, source);
      std::vector<RankPath> entering(ranks);
      std::vector<bool> has_path(ranks, false);
      for (RankPath& path : split_paths(graph, part.column.edges)) {
        const std::uint32_t end = path.to;
        ASSERT_FALSE(has_path[end]);
        ASSERT_TRUE(path.from == source || has_path[path.from]);
        has_path[end] = true;
        entering[end] = std::move(path);
      }
      for (std::uint32_t target = 0; target < ranks; ++target) {
        ASSERT_EQ(has_path[target], target != source);
        for (std::uint32_t rank = target; rank != source; rank = entering[rank].from) {
          for (const std::uint32_t e : entering[rank].edges) {
            for (const std::uint32_t resource : graph.edges[e].resources) {
              loads[orbits->resources.of[resource]] += found->reached;
            }
          }
        }
      }
    }
    Rational fullest = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      fullest = std::max(fullest, loads[r] / Rational(orbits->capacity[r]));
    }
    EXPECT_EQ(fullest, 1);
  }
  EXPECT_GT(whole, 5);
}

/// Where links are alike, a block of many has one slice and the bound is reached all the same.
TEST(Lp, KeepsBlocksWholeWhereItCan) {
  const Topology machines[] = {*generate_hypercube({.dimensions = 6, .wire = {}}), *generate_torus({{4, 4, 4}, {}}),
                               *generate_torus({{8, 8}, {}})};
  for (const Topology& topology : machines) {
    SCOPED_TRACE(topology.name());
    expect_reaches_bound(topology, CollectiveKind::all_to_all);
    const auto schedule = plan_lp(topology, collective_on(topology, CollectiveKind::all_to_all));
    ASSERT_TRUE(schedule);
    EXPECT_EQ(schedule->slices.size(), topology.rank_count() * topology.rank_count());
  }
}

/// Past 64 unlike ranks plans are within two hundredths of their bound.
TEST(Lp, IsNearTheBoundOnManyUnlikeRanks) {
  const Topology topology = *generate_random({.ranks = 72, .switches = 18, .extra = 180, .seed = 5});
  expect_reaches_bound(topology, CollectiveKind::all_to_all, make_rational(1021, 1000));
}

TEST(Lp, RefusesWhatItCannotDo) {
  const Topology one_way = test::make_topology({2, 0, {{0, 1, 1}}});
  EXPECT_EQ(all_reduce_forest(one_way).error().code, ErrorCode::infeasible);
  EXPECT_EQ(plan_lp(one_way, collective_on(one_way, CollectiveKind::all_gather)).error().code, ErrorCode::unsupported);
  const Topology large = *generate_random({.ranks = 600, .extra = 1200});
  for (const CollectiveKind kind : {CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    const auto refused = plan_lp(large, collective_on(large, kind));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_large);
  }
  // Trees of equal weight are planned at any size, and are taken where they are proven to be the optimum.
  const auto trees = plan_lp(large, collective_on(large, CollectiveKind::all_reduce));
  if (trees) {
    expect_reaches_bound(large, CollectiveKind::all_reduce);
  } else {
    EXPECT_EQ(trees.error().code, ErrorCode::too_large);
  }
}

TEST(Lp, TakesLargeNetworksWithSymmetry) {
  const Topology torus = *generate_torus({{12, 12}, {}});
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    expect_reaches_bound(torus, kind);
  }
}

TEST(Lp, OneRankNeedsNothing) {
  const Topology alone = test::make_topology({1, 0, {}});
  EXPECT_EQ(all_reduce_forest(alone).error().code, ErrorCode::unsupported);
  for (const CollectiveKind kind : kinds) {
    const auto schedule = plan_lp(alone, collective_on(alone, kind));
    ASSERT_TRUE(schedule);
    EXPECT_TRUE(schedule->transfers.empty());
  }
}

}  // namespace
}  // namespace espalier::planners
