#include "planners/packing/find/growing_trees.h"

#include <gtest/gtest.h>

#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/find/shallow_trees.h"
#include "planners/packing/improve/tree_exchange.h"

namespace espalier::planners {
namespace {

constexpr std::array<std::uint32_t, 3> three_ranks = {0, 1, 2};

/// Ranks 0, 1 and 2, of which 0 is the root: one unit to each, and one each way between 1 and 2.
std::vector<GrowingTrees::Arc> triangle() { return {{0, 1, 1}, {0, 2, 1}, {1, 2, 1}, {2, 1, 1}}; }

/// Two trees: one over rank 1, one over rank 2. The root cannot serve both ranks in one.
TEST(GrowingTrees, GrantsWhatLeavesTheRestComplete) {
  WorkBudget budget(1000);
  const std::array<std::int64_t, 2> weights = {1, 1};
  GrowingTrees trees(3, triangle(), three_ranks, 0, weights, budget);
  ASSERT_TRUE(trees.is_possible());
  EXPECT_EQ(trees.add(0, 0, {0}, 1), 1);
  EXPECT_EQ(trees.add(0, 0, {1}, 2), 0);
  EXPECT_TRUE(trees.is_blocked(0, 1));
  EXPECT_FALSE(trees.is_blocked(1, 1));
  EXPECT_EQ(trees.add(0, 1, {2}, 2), 1);
  EXPECT_EQ(trees.add(1, 0, {1}, 2), 1);
  EXPECT_EQ(trees.add(1, 2, {3}, 1), 1);
  EXPECT_TRUE(trees.is_complete());
  EXPECT_EQ(depth_of(trees), 2U);
}

TEST(GrowingTrees, SaysWhenThereIsNotEnough) {
  WorkBudget budget(1000);
  const std::array<std::int64_t, 3> weights = {1, 1, 1};
  EXPECT_FALSE(GrowingTrees(3, triangle(), three_ranks, 0, weights, budget).is_possible());
}

/// A tree of weight 2 fits on no path; split in two it does.
TEST(GrowingTrees, SplitsWhatIsTooWide) {
  for (const bool early : {false, true}) {
    WorkBudget budget(1000);
    const std::array<std::int64_t, 1> weights = {2};
    GrowingTrees trees(3, triangle(), three_ranks, 0, weights, budget);
    ASSERT_TRUE(trees.is_possible());
    EXPECT_TRUE(grow(trees, 2, {.level_by_level = false, .splits_early = early, .seed = 0}, budget));
    EXPECT_EQ(trees.trees().size(), 2U);
    EXPECT_EQ(trees.trees()[0].weight, 1);
  }
}

/// Two trees that are paths of three hops each on four ranks that are all joined; two hops are possible.
TEST(TreeExchange, SwapsWhatEntersARank) {
  std::vector<GrowingTrees::Arc> arcs;
  for (std::uint32_t a = 0; a < 4; ++a) {
    for (std::uint32_t b = 1; b < 4; ++b) {
      if (a != b) arcs.push_back({a, b, 1});
    }
  }
  const auto find = [&](std::uint32_t tail, std::uint32_t head) {
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      if (arcs[a].tail == tail && arcs[a].head == head) return a;
    }
    return GrowingTrees::outside;
  };
  const std::array<std::uint32_t, 4> ranks = {0, 1, 2, 3};
  const std::array<std::int64_t, 2> weights = {1, 1};
  WorkBudget budget(10000);
  GrowingTrees trees(4, arcs, ranks, 0, weights, budget);
  const std::array<std::array<std::uint32_t, 4>, 2> paths = {{{0, 1, 2, 3}, {0, 3, 2, 1}}};
  for (std::uint32_t t = 0; t < 2; ++t) {
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(trees.add(t, paths[t][i], {find(paths[t][i], paths[t][i + 1])}, paths[t][i + 1]), 1);
    }
  }
  ASSERT_TRUE(trees.is_complete());
  EXPECT_EQ(depth_of(trees), 3U);
  TreeExchange exchange(trees);
  EXPECT_TRUE(exchange.reach(2, budget));
  for (const ParentTree& tree : exchange.trees()) {
    for (std::uint32_t r = 1; r < 4; ++r) EXPECT_EQ(tree.depth[r], tree.depth[tree.parent[r]] + 1);
  }
}

/// On one switch with as much from every rank as is carried, k trees reach 1 + k + k^2 ... ranks.
TEST(LeastTreeHeight, CountsWhatTreesReach) {
  RootNetwork network{21, {}, {}, 0, 10};
  for (std::uint32_t r = 0; r < 20; ++r) {
    network.rank_vertices.push_back(r);
    network.arcs.push_back({r, 20, 10});
    if (r != 0) network.arcs.push_back({20, r, 10});
  }
  EXPECT_EQ(least_tree_depth(network, 18), 2U);  // 1 + 18 = 19
  EXPECT_EQ(least_tree_depth(network, 17), 3U);
  EXPECT_EQ(least_tree_depth(network, 4), 3U);  // 1 + 4 + 16 = 21
  EXPECT_EQ(least_tree_depth(network, 1), 19U);
}

}  // namespace
}  // namespace espalier::planners
