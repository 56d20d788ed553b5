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

/// The smallest cut between the root and any rank. Cost: a maximum flow per rank.
std::int64_t root_rate(const RootNetwork& network);

/// No packing of at most `most_trees` trees that together carry the rate has all of them lower: a tree of weight w has
/// at most (what v sends) / w edges at v, so it spans at most d (1 + k + ... + k^(h-1)) ranks in h hops, where d are
/// the root's children and k = (what any other rank sends) / w. As the d of all trees together are limited by what the
/// root sends, and the sum is convex in w, trees of equal weight span most.
std::uint32_t least_tree_height(const RootNetwork& network, std::size_t most_trees);

/// Looks for few and low trees of one root (low_root_trees.h): by numbers of trees and orders of growth, within a
/// counted amount of work.
class LowTreeSearch {
 public:
  static constexpr std::size_t most_trees = 16;
  /// With lanes, trees may be wider than links, but together they are no more than so many times the narrowest.
  static constexpr std::int64_t most_units = 48;

  struct Candidate {
    std::unique_ptr<GrowingTrees> grown;    ///< What they were before exchanges.
    std::vector<GrowingTrees::Tree> trees;  ///< Complete ones.
    std::uint32_t height = 0;

    /// Whether it is lower, or as low with fewer trees.
    [[nodiscard]] bool beats(const Candidate& other) const {
      return height != other.height ? height < other.height : trees.size() < other.trees.size();
    }
  };

  /// `searches`: how many searches the work is meant for.
  explicit LowTreeSearch(const RootNetwork& network, std::int64_t searches = 1);

  /// The lowest trees that were found, and of those the fewest.
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
  /// Lowers the best trees by exchanges until they are better than the best of all.
  void lower();
  void sort_found();

  const RootNetwork& network_;
  WorkBudget growth_;
  std::int64_t exchanges_;  ///< Ranks that exchanges may move.
  std::int64_t common_;
  std::uint32_t least_distance_;  ///< How many hops the farthest rank is from the root.
  std::vector<Candidate> found_;  ///< The best of each number of trees, the best of all first.
};

}  // namespace espalier
