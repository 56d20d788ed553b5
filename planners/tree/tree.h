#pragma once

// Tested by: tests/unit/planners/tree/tree_test.cpp

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Topology-aware spanning trees, several at once: double binary trees over machines, one pair per rail, with a star,
/// chain or binary tree inside each machine; edge-disjoint shallow trees along direct links; and trees that spread
/// their load elsewhere. Reduce goes up and broadcast down the same trees; all_gather and reduce_scatter root them
/// by every rank in turn. docs/planners.md tells which is used where. Errors: unsupported for collectives that move
/// different data to every rank, and where two ranks have links in one direction only; too_large for all_gather and
/// reduce_scatter past 2,048 ranks. Source: P. Sanders, J. Speck, J. L. Traeff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", Parallel Computing 35(12), 2009.
Result<Schedule> plan_tree(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
