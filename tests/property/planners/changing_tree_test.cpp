#include "planners/symmetric/changing_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "planners/symmetric/symmetric_plan.h"
#include "topology/generate/generate.h"

// What a tree in depth-first order answers after some ranks were hung elsewhere is what a walk up each chain of the
// tree as it then is gives.

namespace espalier::planners {
namespace {

constexpr std::uint32_t rank_count = 41;

class ChangingTrees : public testing::Test {
 protected:
  static std::uint32_t below(std::mt19937& random, std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); }

  /// Chains in every second round, else bushes; ranks in any order. Latencies are whole, so that sums are exact.
  void make_tree(std::mt19937& random, bool is_chain) {
    std::vector<std::uint32_t> order(rank_count);
    for (std::uint32_t i = 0; i < rank_count; ++i) order[i] = i;
    std::shuffle(order.begin() + 1, order.end(), random);
    parts.paths.assign(5, {});
    for (ShiftPath& path : parts.paths) path.latency = static_cast<double>(1 + random() % 9);
    tree.parent.assign(rank_count, SliceTree::none);
    tree.path.assign(rank_count, SliceTree::none);
    for (std::uint32_t i = 1; i < rank_count; ++i) {
      tree.parent[order[i]] = order[is_chain ? i - 1 - below(random, std::min(i, 2U)) : below(random, i)];
      tree.path[order[i]] = below(random, 5);
    }
  }

  static bool walk_is_below(const std::vector<Hanging>& now, std::uint32_t rank, std::uint32_t top) {
    for (; rank != top; rank = now[rank].parent) {
      if (rank == 0) return false;
    }
    return true;
  }
  [[nodiscard]] double walk_chain(const std::vector<Hanging>& now, std::uint32_t rank) const {
    double chain = 0;
    for (; rank != 0; rank = now[rank].parent) chain += parts.paths[now[rank].path].latency;
    return chain;
  }

  PartTrees parts;
  SliceTree tree;
};

TEST_F(ChangingTrees, AnswersAreThoseOfWalks) {
  const Topology ring = *generate_ring({.ranks = rank_count});
  const auto plan = plan_symmetric(ring, *make_collective(CollectiveKind::all_gather, rank_count, std::nullopt));
  ASSERT_TRUE(plan) << plan.error().message;
  const Shifts shifts(*plan->orbits);
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    make_tree(random, seed % 2 == 0);
    const IndexedTree before(tree, parts.paths);
    ChangingTree changing(parts, tree, before, shifts, 0);
    std::vector<Hanging> now;
    for (std::uint32_t rank = 0; rank < rank_count; ++rank) now.push_back({rank, tree.parent[rank], tree.path[rank]});
    EXPECT_EQ(changing.longest_changed_chain(), 0);
    for (int change = 0; change < 12; ++change) {
      const std::uint32_t rank = 1 + below(random, rank_count - 1), parent = below(random, rank_count);
      if (walk_is_below(now, parent, rank)) continue;
      now[rank] = {rank, parent, below(random, 5)};
      changing.hang(now[rank]);

      double longest = 0;
      for (std::uint32_t a = 0; a < rank_count; ++a) {
        ASSERT_EQ(changing.parent(a), now[a].parent) << "seed " << seed;
        bool hangs_on_changed = false;
        for (std::uint32_t b = 0; b < rank_count; ++b) {
          const bool is_below = walk_is_below(now, a, b);
          ASSERT_EQ(changing.is_below(a, b), is_below) << "seed " << seed << ", " << a << " below " << b;
          hangs_on_changed = hangs_on_changed || (is_below && changing.is_changed(b));
        }
        if (hangs_on_changed) longest = std::max(longest, walk_chain(now, a));
      }
      ASSERT_EQ(changing.longest_changed_chain(), longest) << "seed " << seed;
    }
  }
}

TEST_F(ChangingTrees, RangesAreWhatHangsOnARank) {
  std::mt19937 random(7);
  make_tree(random, false);
  const IndexedTree indexed(tree, parts.paths);
  for (std::uint32_t rank = 0; rank < rank_count; ++rank) {
    std::uint32_t size = 1;
    for (const std::uint32_t child : indexed.children(rank)) {
      EXPECT_EQ(tree.parent[child], rank);
      EXPECT_EQ(indexed.chain(child), indexed.chain(rank) + parts.paths[tree.path[child]].latency);
      size += indexed.end(child) - indexed.begin(child);
    }
    EXPECT_EQ(indexed.end(rank) - indexed.begin(rank), size);
  }
  EXPECT_EQ(indexed.longest_chain(3, 3), 0);
}

}  // namespace
}  // namespace espalier::planners
