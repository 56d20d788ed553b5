#pragma once

// Tested by: tests/unit/planners/packing/find/growing_trees_test.cpp

#include <cstdint>

#include "planners/packing/find/growing_trees.h"

namespace espalier::planners {

/// How trees take turns as they grow.
struct GrowthOrder {
  bool level_by_level = false;  ///< All trees get one level higher at a time; else one is finished after the other.
  bool splits_early = false;    ///< Trees are split where a path is too narrow; else only where none grows any more.
  std::uint64_t seed = 0;       ///< In which order equally good ranks come, unlike for every tree; 0: as numbered.
};

/// Grows the trees until they span all ranks, shallow ones, each member handing on to as many ranks as the others can
/// spare. Trees that cannot take a path as a whole are split, up to `max_trees`. False when they get stuck, or the
/// budget of the trees is spent.
bool grow(GrowingTrees& trees, std::size_t max_trees, const GrowthOrder& order, const WorkBudget& budget);

/// The edges between the root and the farthest rank of any of the trees.
std::uint32_t depth_of(const GrowingTrees& trees);

}  // namespace espalier::planners
