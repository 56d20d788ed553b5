#pragma once

// Tested by: tests/unit/planners/bounds/all_reduce_bound_test.cpp

#include "base/result.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bounds/cut_bound.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/bound.h"

namespace espalier::planners {

/// What limits an all_reduce, and how far the limit is known to be reachable.
struct AllReduceBounds {
  Bound best;              ///< The largest proven limit.
  AllReduceFloors floors;  ///< The limits that simple counting proves, and what reduce-scatter + all-gather reaches.
  /// `best` is the optimum over all schedules that reduce each piece along an in-tree and broadcast it along an
  /// out-tree of the same root, roots free, both at once, switches only forwarding.
  bool optimal_in_class = false;
  std::vector<BoundPrice> prices;                   ///< Of `best`, where a program proves it.
  std::shared_ptr<const AllReduceProgram> program;  ///< Where it was solved.
};

/// The optimum of all_reduce over pairs of trees where it can be had, a floor elsewhere; docs/bounds.md has the formula
/// and the proof. Where switches copy or add, only the smallest cut is a limit.
/// Errors: infeasible when a rank cannot reach another, naming both.
/// Cost: up to 16 ranks well under a second, up to 64 orbits of ranks a second or two; beyond that about one maximum
/// flow per rank.
Result<AllReduceBounds> all_reduce_bounds(const PlanningProblem& problem, const PlanContext& context = {});

}  // namespace espalier::planners
