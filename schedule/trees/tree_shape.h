#pragma once

// Tested by: tests/unit/schedule/trees/tree_schedule_test.cpp

#include <cstdint>
#include <vector>

#include "schedule/trees/tree_schedule.h"

namespace espalier {

/// Depths, heights and order of one arborescence, in arrays that are reused from tree to tree.
class TreeShape {
 public:
  explicit TreeShape(std::size_t rank_count);

  /// Replaces the tree. Errors: invalid_input when ids are out of range, a rank is entered twice or an edge comes
  /// before the one that enters its parent; `name` calls the tree in the message.
  Result<void> read(const Arborescence& tree, const std::string& name);

  [[nodiscard]] bool reaches(Rank rank) const { return rank == root_ || parent_[rank.index()] != Rank(); }
  /// None for the root and for ranks outside the tree.
  [[nodiscard]] Rank parent(Rank rank) const { return parent_[rank.index()]; }
  /// How many edges lie between the root and this rank.
  [[nodiscard]] std::uint32_t depth(Rank rank) const { return depth_[rank.index()]; }
  /// How many edges lie between this rank and the deepest one below it.
  [[nodiscard]] std::uint32_t height(Rank rank) const { return height_[rank.index()]; }
  /// The place of this rank among those of its depth, in the order of their parents' places; of one parent's children
  /// the highest subtree comes first, equal ones in the order of their distance in rank numbers, so that the roots of
  /// many flat trees do not all begin with the same rank.
  [[nodiscard]] std::uint32_t place(Rank rank) const { return place_[rank.index()]; }

 private:
  void find_places(const Arborescence& tree);

  Rank root_;
  std::vector<Rank> parent_;
  std::vector<std::uint32_t> depth_;
  std::vector<std::uint32_t> height_;
  std::vector<std::uint32_t> place_;

  // Scratch of find_places.
  std::vector<Rank> siblings_;        ///< All children, grouped by parent.
  std::vector<std::uint32_t> first_;  ///< By parent: where its children begin there.
  std::vector<Rank> order_;           ///< Breadth first.
};

/// How many edges lie between the root and the farthest rank. Requires: edges in an arborescence's order.
std::uint32_t height_of(const Arborescence& tree, std::size_t rank_count);

}  // namespace espalier
