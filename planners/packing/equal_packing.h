#pragma once

// Tested by: tests/property/planners/pruned_packing_test.cpp

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// Trees of equal weight, one that comes twice having weight 2.
struct EqualPacking {
  std::vector<Arborescence> trees;
  bool is_best = false;  ///< So many such trees cannot leave the fullest link less full.
};

/// So many spanning trees of equal weight per root. In a time U a link of rate b lets floor(U b) trees through; the
/// least U at which what is let through packs is found by bisection over the multiples of 1/b. These are the best trees
/// but where a switch lets fewer whole trees in than out, or out than in, and nothing can be taken off. Errors:
/// unsupported where all are roots and some must not relay, or a switch is never balanced; too_large where that is more
/// work than splitting does. Requires: count > 0. Source: L. Zhao et al., "ForestColl", arXiv 2402.06787 (fixed k).
Result<EqualPacking> equal_packing(const PackingProblem& problem, std::uint32_t count);

}  // namespace espalier::planners
