#include "planners/packing/find/growing_trees.h"

#include <gtest/gtest.h>

#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/find/shallow_trees.h"

namespace espalier::planners {
namespace {

/// Ranks 0, 1 and 2, of which 0 is the root: one unit to each, and one each way between 1 and 2.
FlowNetwork triangle() { return {3, {{0, 1, 1, {}}, {0, 2, 1, {}}, {1, 2, 1, {}}, {2, 1, 1, {}}}, {0, 1, 2}}; }

/// Two trees: one over rank 1, one over rank 2. The root cannot serve both ranks in one.
TEST(GrowingTrees, GrantsWhatLeavesTheRestComplete) {
  WorkBudget budget(1000);
  const std::array<std::int64_t, 2> weights = {1, 1};
  const FlowNetwork network = triangle();
  GrowingTrees trees(network, {1, 1, 1, 1}, Rank(0), weights, budget);
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
  const FlowNetwork network = triangle();
  EXPECT_FALSE(GrowingTrees(network, {1, 1, 1, 1}, Rank(0), weights, budget).is_possible());
}

/// A tree of weight 2 fits on no path; split in two it does.
TEST(GrowingTrees, SplitsWhatIsTooWide) {
  for (const bool early : {false, true}) {
    WorkBudget budget(1000);
    const std::array<std::int64_t, 1> weights = {2};
    const FlowNetwork network = triangle();
    GrowingTrees trees(network, {1, 1, 1, 1}, Rank(0), weights, budget);
    ASSERT_TRUE(trees.is_possible());
    EXPECT_TRUE(grow(trees, 2, {.level_by_level = false, .splits_early = early, .seed = 0}, budget));
    EXPECT_EQ(trees.trees().size(), 2U);
    EXPECT_EQ(trees.trees()[0].weight, 1);
  }
}

/// On one switch with as much from every rank as is carried, k trees reach 1 + k + k^2 ... ranks.
TEST(LeastTreeHeight, CountsWhatTreesReach) {
  std::vector<std::uint32_t> ranks;
  std::vector<FlowArc> arcs;
  for (std::uint32_t r = 0; r < 20; ++r) {
    ranks.push_back(r);
    arcs.push_back({r, 20, 10, {}});
    if (r != 0) arcs.push_back({20, r, 10, {}});
  }
  const RootNetwork network{{21, arcs, ranks}, Rank(0), 10, {}};
  EXPECT_EQ(min_tree_depth(network, 18), 2U);  // 1 + 18 = 19
  EXPECT_EQ(min_tree_depth(network, 17), 3U);
  EXPECT_EQ(min_tree_depth(network, 4), 3U);  // 1 + 4 + 16 = 21
  EXPECT_EQ(min_tree_depth(network, 1), 19U);
}

}  // namespace
}  // namespace espalier::planners
