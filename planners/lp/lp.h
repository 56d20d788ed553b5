#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include "base/result.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Plans with the solution of the linear program behind the bound, so that no link is loaded past it: all_reduce over
/// in-trees and out-trees with free roots, all_to_all and send_recv over the best routes of all blocks at once.
/// all_to_all and send_recv past 64 orbits of ranks or 1,024 of links end within two hundredths of the limit.
/// Errors: unsupported for other collectives and where the optimum was not reached; infeasible when a rank cannot reach
/// another; too_large past 64 orbits of ranks for all_reduce, past is_near_flow_size (flow_program.h) for the others.
Result<Schedule> plan_lp(const PlanningProblem& problem, const Collective& collective, const PlanContext& context = {});

}  // namespace espalier::planners
