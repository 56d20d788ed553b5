#pragma once

// Tested by: tests/unit/planners/packing/packing_test.cpp

#include "base/result.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Plans with a packing of spanning trees of the best possible throughput (docs/packing.md).
///
/// all_gather, reduce_scatter, broadcast and reduce load no link past the bound where every switch takes in as much as
/// it gives out, gather and scatter everywhere; all_reduce is a reduce-scatter and an all-gather with the same roots,
/// or the trees of all_reduce_forest.h where those load the network less. Where switches are unbalanced or a rank has a
/// backplane, the load may exceed the bound, exactly as compute_loads says. Errors: unsupported for all_to_all and
/// send_recv; infeasible when a rank cannot reach another; too_large past the limits of find/finders.cpp.
Result<Schedule> plan_packing(const PlanningProblem& problem, const Collective& collective,
                              const PlanContext& context = {});

}  // namespace espalier::planners
