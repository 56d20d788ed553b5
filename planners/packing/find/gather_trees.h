#pragma once

// Tested by: tests/unit/planners/packing/packing_test.cpp

#include <vector>

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// Trees along which every rank's shard reaches the root of a gather or scatter, no arc carrying more than at the bound
/// (gather_cut): in-trees of a gather, out-trees of a scatter.
///
/// A maximum flow to the root, without its cycles, is a sum of trees: again and again every rank takes one path on, and
/// the tree of these paths gets as much weight as its fullest edge has left. Weights are exact unless their common
/// denominator passes 2^60; then they are rounded to multiples of 2^-30 of the sum.
/// Trees reach the ranks that have a share, over others where these are on their path.
/// Requires: every rank reaches every other; two ranks or more. Errors: too_large when the scaled rates pass 2^60.
/// Cost: a maximum flow or two; at most one tree per path in use.
Result<std::vector<Arborescence>> gather_trees(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
