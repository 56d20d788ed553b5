#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include "base/result.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The trees that NCCL's search finds (found_trees), where the context says whose; else double binary trees over
/// machines with a chain inside each, or one chain where there is one machine.
/// Errors: unsupported for all but all_reduce, and where neighbours in a tree have no route.
Result<Schedule> plan_nccl_tree(const PlanningProblem& problem, const Collective& collective,
                                const PlanContext& context);

/// Through one switch that copies and adds: every rank collects a part of the sum from it and hands it out by it.
/// Errors: unsupported for other than all_reduce, all_gather and reduce_scatter; where there are several machines;
/// where no switch that does both is next to all ranks.
Result<Schedule> plan_nvls(const Topology& topology, const Collective& collective);

/// As plan_nvls inside every machine, and double binary trees over the machines between the ranks that have a port.
/// Errors: unsupported for all but all_reduce, on one machine, and as plan_nvls.
Result<Schedule> plan_nvls_tree(const Topology& topology, const Collective& collective);

}  // namespace espalier::planners
