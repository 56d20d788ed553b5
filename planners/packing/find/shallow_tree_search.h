#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "planners/packing/find/growing_trees.h"
#include "planners/packing/find/shallow_trees.h"

namespace espalier {

/// A network with one root, in capacities of any unit. Requires: capacities that sum to less than 2^56.
struct RootNetwork {
  std::size_t vertex_count = 0;
  std::vector<GrowingTrees::Arc> arcs;       ///< Away from the root.
  std::vector<std::uint32_t> rank_vertices;  ///< By rank.
  std::uint32_t root = 0;                    ///< A rank.
  std::int64_t rate = 0;                     ///< What the trees carry in all.
  std::vector<std::int64_t> lanes;           ///< By arc: of how many equal links it is; empty where all are of one.
};

/// No packing of at most `most_trees` trees that together carry the rate has all of them less deep: a tree of weight w
/// has at most (what v sends) / w edges at v, so it spans at most d (1 + k + ... + k^(h-1)) ranks in h hops, where d
/// are the root's children and k = (what any other rank sends) / w. As the d of all trees together are limited by what
/// the root sends, and the sum is convex in w, trees of equal weight span most.
std::uint32_t least_tree_depth(const RootNetwork& network, std::size_t most_trees);

/// Looks for a small number of shallow trees of one root (shallow_root_trees.h): by numbers of trees and orders of
/// growth, within a counted amount of work.
class ShallowTreeSearch {
 public:
  static constexpr std::size_t most_trees = 16;
  /// With lanes, trees may be wider than links, but together they are no more than so many times the narrowest.
  static constexpr std::int64_t most_units = 48;

  struct Candidate {
    std::unique_ptr<GrowingTrees> grown;  ///< What they were before exchanges.
    std::vector<ParentTree> trees;        ///< Complete ones.
    std::uint32_t depth = 0;

    /// Whether it is less deep, or as deep with fewer trees.
    [[nodiscard]] bool beats(const Candidate& other) const {
      return depth != other.depth ? depth < other.depth : trees.size() < other.trees.size();
    }
  };

  /// `searches`: how many searches the work is meant for.
  explicit ShallowTreeSearch(const RootNetwork& network, std::int64_t searches = 1);

  /// The shallowest trees that were found, and of those the fewest.
  std::optional<Candidate> run();

 private:
  [[nodiscard]] bool can_improve(std::size_t count) const;
  void try_growth(std::size_t count, const GrowthOrder& order);
  /// What every arc has room for in whole trees, or, where arcs are of lanes, their lanes in whole trees, when `units`
  /// such trees carry the rate.
  [[nodiscard]] std::vector<GrowingTrees::Arc> whole_arcs(std::int64_t units) const;
  /// Trees of one or several units of weight, for the fewest units past `most_trees` that exist.
  void try_units();
  /// False where no trees of these weights exist.
  bool grow_in(std::vector<GrowingTrees::Arc> arcs, std::span<const std::int64_t> weights, const GrowthOrder& order);
  /// Makes the best trees shallower by exchanges until they are better than the best of all.
  void exchange();
  void sort_found();

  const RootNetwork& network_;
  WorkBudget growth_;
  std::int64_t exchanges_;  ///< Ranks that exchanges may move.
  std::int64_t common_;
  std::uint32_t least_distance_;  ///< How many hops the farthest rank is from the root.
  std::vector<Candidate> found_;  ///< The best of each number of trees, the best of all first.
};

}  // namespace espalier
