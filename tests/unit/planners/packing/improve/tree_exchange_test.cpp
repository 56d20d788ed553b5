#include "planners/packing/improve/tree_exchange.h"

#include <gtest/gtest.h>

#include <array>

#include "planners/packing/find/shallow_trees.h"

namespace espalier::planners {
namespace {

/// Two trees that are paths of three hops each on four ranks that are all joined; two hops are possible.
TEST(TreeExchange, SwapsWhatEntersARank) {
  std::vector<FlowArc> arcs;
  for (std::uint32_t a = 0; a < 4; ++a) {
    for (std::uint32_t b = 1; b < 4; ++b) {
      if (a != b) arcs.push_back({a, b, 1, {}});
    }
  }
  const auto find = [&](std::uint32_t tail, std::uint32_t head) {
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      if (arcs[a].tail == tail && arcs[a].head == head) return a;
    }
    return UINT32_MAX;
  };
  const FlowNetwork network(4, arcs, {0, 1, 2, 3});
  const std::array<std::int64_t, 2> weights = {1, 1};
  WorkBudget budget(10000);
  GrowingTrees trees(network, std::vector<std::int64_t>(arcs.size(), 1), Rank(0), weights, budget);
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

}  // namespace
}  // namespace espalier::planners
