#pragma once

// Tested by: tests/unit/planners/packing/find/growing_trees_test.cpp

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "planners/graph/work_budget.h"
#include "planners/packing/find/growing_trees.h"
#include "planners/packing/find/shallow_trees.h"
#include "planners/packing/reduce/root_network.h"

namespace espalier::planners {

/// No packing of at most `max_trees` trees that together carry the rate has all of them less deep: a tree of weight w
/// has at most (what v sends) / w edges at v, so it spans at most d (1 + k + ... + k^(h-1)) ranks in h hops, where d
/// are the root's children and k = (what any other rank sends) / w. As the d of all trees together are limited by what
/// the root sends, and the sum is convex in w, trees of equal weight span most.
std::uint32_t min_tree_depth(const RootNetwork& network, std::size_t max_trees);

inline constexpr std::size_t max_shallow_trees = 16;

/// A small number of shallow trees of one root that carry its network's rate: at most 16 that join different ranks, and
/// of the packings found the least deep one, then the one of fewest trees.
///
/// For 16 trees of equal weight and every smaller number, trees grow side by side (growing_trees.h, shallow_trees.h) in
/// what every link has room for, rounded down to whole trees; where no such trees exist, trees whose weights are nearly
/// equal at first and that are split as they grow. Links that stand for parallel ones have room for trees that are
/// wider than one of them. Cost: some ten thousand searches per rank; counted work is limited.
class ShallowTreeSearch {
 public:
  /// Within the work of one of `searches`. Requires: a network that outlives the search.
  ShallowTreeSearch(const RootNetwork& network, std::int64_t searches);
  ShallowTreeSearch(const ShallowTreeSearch&) = delete;

  /// Grows trees of different numbers and in different orders; false where none were found.
  bool grow();
  /// Makes the best trees shallower by exchanges (tree_exchange.h) until they are better than the best of all.
  void exchange();
  /// The best: complete trees with whole weights. Requires: some were found.
  [[nodiscard]] std::span<const ParentTree> best() const { return found_.front().trees; }

 private:
  struct Candidate {
    std::unique_ptr<GrowingTrees> grown;  ///< What they were before exchanges.
    std::vector<ParentTree> trees;        ///< Complete ones.
    std::uint32_t depth = 0;

    /// Whether it is less deep, or as deep with fewer trees.
    [[nodiscard]] bool beats(const Candidate& other) const {
      return depth != other.depth ? depth < other.depth : trees.size() < other.trees.size();
    }
  };

  [[nodiscard]] bool can_improve(std::size_t count) const;
  void try_growth(std::size_t count, const GrowthOrder& order);
  /// By arc: how many whole trees it has room for, or, where arcs stand for parallel links, all of these, when `units`
  /// such trees carry the rate.
  [[nodiscard]] std::vector<std::int64_t> whole_trees(std::int64_t units) const;
  /// Trees of one or several units of weight, for the fewest units past `max_shallow_trees` that exist.
  void try_units();
  /// False where no trees of these weights exist.
  bool grow_in(std::vector<std::int64_t> room, std::span<const std::int64_t> weights, const GrowthOrder& order);
  void sort_found();

  const RootNetwork& network_;
  std::size_t ranks_;
  WorkBudget growth_;
  std::int64_t exchanges_;  ///< Ranks that exchanges may move.
  std::int64_t common_;
  std::uint32_t min_distance_;    ///< How many hops the farthest rank is from the root.
  std::vector<Candidate> found_;  ///< The best of each number of trees, the best of all first.
};

}  // namespace espalier::planners
