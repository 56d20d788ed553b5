#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Every block to its destination by PXN: what goes to another machine first goes, inside its own, to a GPU from which
/// the way to the destination is shortest, which is one whose NIC is on the destination's rail, unless the source is as
/// near itself. Of several such GPUs, and of parallel routes, the least loaded.
/// Errors: unsupported for all but all_to_all, send_recv, gather and scatter; where every source is as near itself;
/// where two ranks that have to talk have no route. Source: github.com/NVIDIA/nccl (June 2026), src/graph/paths.cc and
/// src/transport/net.cc (NCCL_PXN_DISABLE).
Result<Schedule> plan_pxn(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
