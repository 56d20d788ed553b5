#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// NCCL's sends and receives: every block straight to its destination, in equal pieces over the parallel routes that
/// there are (NICs, planes of switches), as many as any two ranks have; where two ranks have no route, by way of one
/// rank between them, and where that is not enough, as plan_flat relays.
/// Errors: unsupported for other collectives than all_to_all, send_recv, gather and scatter; too_large past 1,024 ranks
/// without a root.
Result<Schedule> plan_sends(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
