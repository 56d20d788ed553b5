#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include "base/result.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// The trees that reach all_reduce's optimum (all_reduce_bound.h): per root, in-trees and out-trees with whole weights
/// of equal sum; parallel links share the load. Where every cable is duplex, in-trees and out-trees mirror each other
/// and are rooted at their middle. Weights are exact unless the solution's denominators pass 2^50; then they are
/// rounded and the schedule takes about 2^-30 longer. Past the size up to which the optimum is computed they are near
/// it (all_reduce_program.h). Errors: infeasible when a rank cannot reach another, naming both; too_large past 1,024
/// ranks; unsupported with one rank, or where the optimum was not reached exactly.
Result<Forest> all_reduce_forest(const PlanningProblem& problem, const PlanContext& context = {});

}  // namespace espalier::planners
