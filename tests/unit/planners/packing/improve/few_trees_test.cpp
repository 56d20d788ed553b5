#include "planners/packing/improve/few_trees.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "planners/packing/improve/tree_balance.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/root_trees.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

struct Solved {
  OrbitGraph orbits;
  TreeGroups groups;
  ColumnSolution best;
  ColumnSolution few;
};

Solved solve(const Topology& topology, bool inward, std::uint32_t enough) {
  Solved solved{make_orbit_graph(topology, false, Symmetry::free), {}, {}, {}};
  solved.groups = sharded_groups(solved.orbits, inward);
  const TreeOracle oracle(solved.orbits, solved.groups);
  solved.best = generate_columns(oracle.program(), oracle, {.shallow = true});
  EXPECT_TRUE(solved.best.attained);
  solved.few = with_fewer_trees(solved.orbits, oracle, solved.best, {.enough = enough, .max_height = 0});
  return solved;
}

/// Every group carries the limit, and no resource more than its capacity: all in exact fractions.
void expect_as_good(const Solved& solved) {
  EXPECT_EQ(solved.few.limit, solved.best.limit);
  std::map<std::uint32_t, Rational> carried;
  std::vector<Rational> load(solved.orbits.capacity.size(), 0);
  for (const ColumnSolution::Part& part : solved.few.parts) {
    EXPECT_GT(part.amount, 0);
    carried[part.column.group] += part.amount;
    for (const Entry entry : part.column.loads) load[entry.index] += part.amount * entry.value;
  }
  EXPECT_EQ(carried.size(), solved.groups.groups.size());
  for (const auto& [group, sum] : carried) EXPECT_EQ(sum, solved.best.limit);
  for (std::size_t r = 0; r < load.size(); ++r) EXPECT_LE(load[r], Rational(solved.orbits.capacity[r]));
}

/// A star of 23 ranks over 6 planes has 22 edges: 4 on each of 5 planes and 2 on the sixth fill the five, at a quarter
/// of a plane's rate; what is left is one plane's other half, which one tree more fills. One tree cannot do: each
/// plane would have to take 22/6 of its edges.
TEST(FewTrees, PlanesOfSwitches) {
  const Solved solved = solve(test::switch_planes(23, 6), false, 2);
  expect_as_good(solved);
  EXPECT_LE(max_columns(solved.few), 3U);
}

/// 63 edges over 6 directions are ten or eleven of each: two trees of half the data, one with eleven where the other
/// has ten.
TEST(FewTrees, TorusNeedsTwo) {
  const Solved solved = solve(*generate_torus({{4, 4, 4}, {}}), false, 2);
  expect_as_good(solved);
  EXPECT_EQ(max_columns(solved.few), 2U);
  for (const ColumnSolution::Part& part : solved.few.parts) EXPECT_EQ(part.column.height, 6U);
}

TEST(FewTrees, AsGoodAndNoMoreOnRandomNetworks) {
  Random random(71);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random({.ranks = random.between(2, 8),
                                                .switches = random.between(0, 3),
                                                .extra = random.between(0, 12),
                                                .one_way = round % 2 == 0,
                                                .seed = random.next()});
    const Solved solved = solve(topology, round % 3 == 0, 1);
    expect_as_good(solved);
    EXPECT_LE(max_columns(solved.few), max_columns(solved.best));
  }
}

/// Free sharing: trees of all_reduce add up to the same throughput.
TEST(FewTrees, AsGoodForAllReduce) {
  Random random(72);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random({.ranks = random.between(2, 7),
                                                .switches = random.between(0, 2),
                                                .extra = random.between(0, 10),
                                                .one_way = round % 2 == 0,
                                                .seed = random.next()});
    const OrbitGraph orbits = make_orbit_graph(topology, true, Symmetry::none);
    const TreeGroups groups = all_reduce_groups(orbits);
    const TreeOracle oracle(orbits, groups);
    const ColumnSolution best = generate_columns(oracle.program(), oracle, {.shallow = true});
    ASSERT_TRUE(best.attained);
    const ColumnSolution few = with_fewer_trees(orbits, oracle, best, {.enough = 1, .max_height = 0});
    EXPECT_LE(few.parts.size(), best.parts.size());
    Rational out = 0;
    Rational in = 0;
    std::vector<Rational> load(orbits.capacity.size(), 0);
    for (const ColumnSolution::Part& part : few.parts) {
      (groups.groups[part.column.group].inward ? in : out) += part.amount;
      for (const Entry entry : part.column.loads) load[entry.index] += part.amount * entry.value;
    }
    EXPECT_EQ(out, best.limit);
    if (!orbits.graph.mirrored) {
      EXPECT_EQ(in, best.limit);
    }
    for (std::size_t r = 0; r < load.size(); ++r) EXPECT_LE(load[r], Rational(orbits.capacity[r]));
  }
}

/// Counted work ends the search, by no more than one program later, and what there is by then is as good.
TEST(FewTrees, EndsWhenItsWorkIsSpent) {
  Random random(73);
  std::size_t ended = 0;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random(
        {.ranks = random.between(8, 14), .switches = random.between(0, 2), .extra = 20, .seed = random.next()});
    const OrbitGraph orbits = make_orbit_graph(topology, true, Symmetry::none);
    const TreeOracle oracle(orbits, all_reduce_groups(orbits));
    const ColumnSolution best = generate_columns(oracle.program(), oracle, {.shallow = true});
    ASSERT_TRUE(best.attained);
    EXPECT_GT(best.work, 0);
    const auto thin = [&](std::int64_t max_work) {
      return with_fewer_trees(orbits, oracle, best, {.enough = 1, .max_height = 0, .max_work = max_work});
    };
    const ColumnSolution free = thin(FewTrees{}.max_work);
    const std::int64_t half = (free.work - best.work) / 2;
    const ColumnSolution few = thin(half);
    EXPECT_LE(few.work - best.work, half + best.work);
    EXPECT_LE(few.work, free.work);
    EXPECT_LE(few.parts.size(), best.parts.size());
    EXPECT_GE(few.parts.size(), free.parts.size());
    ended += few.work < free.work ? 1U : 0U;
    Rational carried = 0;
    for (const ColumnSolution::Part& part : few.parts) carried += part.amount;
    EXPECT_EQ(carried, best.limit);
    EXPECT_LE(thin(0).work, few.work);
  }
  EXPECT_GT(ended, 6U);
}

/// Balancing keeps a tree a tree of the same height, and at equal prices spreads it: a star over two planes takes both.
TEST(TreeBalance, SpreadsAStarOverPlanes) {
  const Topology topology = test::switch_planes(5, 2);
  const OrbitGraph orbits = make_orbit_graph(topology, false, Symmetry::none);
  const TreeGroups groups = single_root_group(0, false);
  const TreeOracle oracle(orbits, groups);
  std::vector<double> prices(orbits.capacity.size(), 1);
  const Column star = oracle.cheapest(prices).columns.front();
  const std::vector<BigInteger> even(orbits.capacity.size(), 1);
  const std::vector<double> room(orbits.capacity.size(), 4);
  const Column spread = balanced_trees(orbits, oracle, even, {star}, room, 0).front();
  EXPECT_EQ(spread.height, star.height);
  std::int64_t most = 0;
  for (const Entry entry : spread.loads) most = std::max(most, entry.value);
  EXPECT_EQ(most, 2);  // four edges leave the root, two over each plane
}

}  // namespace
}  // namespace espalier::planners
