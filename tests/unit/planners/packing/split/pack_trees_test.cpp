#include "planners/packing/split/pack_trees.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "planners/packing/split/demand_oracle.h"

namespace espalier::planners {
namespace {

/// Trees that span, weigh what each root demands and fit the edges.
void expect_packing(const std::vector<Arborescence>& trees, const std::vector<RankEdge>& edges,
                    const std::vector<std::int64_t>& demands) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> left;
  for (const RankEdge& edge : edges) left[{edge.tail, edge.head}] += edge.capacity;
  std::vector<std::int64_t> weights(demands.size(), 0);
  for (const Arborescence& tree : trees) {
    ASSERT_GT(tree.weight, 0);
    weights[tree.root.index()] += tree.weight;
    std::vector<bool> reached(demands.size(), false);
    reached[tree.root.index()] = true;
    for (const TreeEdge& edge : tree.edges) {
      const std::uint32_t parent = edge.parent.value();
      const std::uint32_t child = edge.child.value();
      ASSERT_TRUE(reached[parent]);
      ASSERT_FALSE(reached[child]);
      reached[child] = true;
      ASSERT_GE(left[std::pair(parent, child)] -= tree.weight, 0);
    }
    ASSERT_EQ(tree.edges.size() + 1, demands.size());
  }
  ASSERT_EQ(weights, demands);
}

/// Every root has all that it needs to every rank: stars.
TEST(PackTrees, StarsWhereEveryRootReachesAll) {
  std::vector<RankEdge> edges;
  for (std::uint32_t a = 0; a < 5; ++a) {
    for (std::uint32_t b = 0; b < 5; ++b) {
      if (a != b) edges.push_back({a, b, 3});
    }
  }
  const std::vector<std::int64_t> demands(5, 3);
  WorkBudget budget(1 << 30);
  const auto stars = pack_trees(edges, demands, budget);
  ASSERT_TRUE(stars);
  EXPECT_EQ(stars->size(), 5U);
  expect_packing(*stars, edges, demands);
}

/// A ring both ways, 7 units per root through 2 x 4 of capacity per rank: trees are paths, some turning at a rank.
TEST(PackTrees, ARingsTreesArePaths) {
  std::vector<RankEdge> edges;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    edges.push_back({rank, (rank + 1) % 8, 7});
    edges.push_back({(rank + 1) % 8, rank, 7});
  }
  const std::vector<std::int64_t> demands(8, 2);
  WorkBudget budget(1 << 30);
  const auto trees = pack_trees(edges, demands, budget);
  ASSERT_TRUE(trees);
  expect_packing(*trees, edges, demands);
}

TEST(PackTrees, StopsWhenTheBudgetIsSpent) {
  std::vector<RankEdge> edges;
  for (std::uint32_t rank = 0; rank < 8; ++rank) {
    edges.push_back({rank, (rank + 1) % 8, 7});
    edges.push_back({(rank + 1) % 8, rank, 7});
  }
  WorkBudget budget(10);
  EXPECT_FALSE(pack_trees(edges, std::vector<std::int64_t>(8, 2), budget));
  EXPECT_TRUE(budget.is_spent());
}

/// Random demands, scaled down until they can be met: then they are.
TEST(PackTrees, PacksWhateverFlowsAllow) {
  Random random(41);
  int packed = 0;
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto ranks = static_cast<std::uint32_t>(random.between(2, 8));
    std::vector<RankEdge> edges;
    for (std::uint32_t a = 0; a < ranks; ++a) {
      for (std::uint32_t b = 0; b < ranks; ++b) {
        if (a != b && random.below(2) == 0) edges.push_back({a, b, random.between(1, 12)});
      }
    }
    std::vector<std::int64_t> demands;
    std::vector<std::uint32_t> vertices;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      demands.push_back(random.between(0, 3));
      vertices.push_back(rank);
    }
    WorkBudget budget(std::int64_t{1} << 40U);
    DemandOracle oracle(ranks, vertices, demands, budget);
    for (const RankEdge& edge : edges) oracle.add_edge(edge.tail, edge.head, edge.capacity);
    if (!oracle.is_satisfied()) continue;
    const auto trees = pack_trees(edges, demands, budget);
    ASSERT_TRUE(trees);
    expect_packing(*trees, edges, demands);
    ++packed;
  }
  EXPECT_GT(packed, 50);
}

}  // namespace
}  // namespace espalier::planners
