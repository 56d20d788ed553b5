#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// So many spanning trees of equal weight per root, the best there are: the fullest link has as little of them as any
/// such trees leave it, where every switch keeps as many whole trees in as out. A tree that comes twice has weight 2.
///
/// In a time U a link of rate b lets floor(U b) trees through; the smallest U at which what is let through still packs
/// is found by bisection over the multiples of 1/b.
/// Errors: unsupported where all are roots and some must not relay, or a switch is not balanced by whole trees;
/// too_large where that is more work than splitting does. Requires: count > 0.
/// Source: L. Zhao et al., "ForestColl", arXiv 2402.06787 (fixed k).
Result<std::vector<Arborescence>> equal_packing(const PackingProblem& problem, std::uint32_t count);

}  // namespace espalier::planners
