#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include "base/result.h"
#include "planners/lp/flow_program.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The schedule of a traffic matrix by a solution of its program: every block along the paths that it takes in its
/// source's columns, in proportion to what these carry; like paths of several columns are one, and those that carry
/// next to nothing of a block are left out. Errors: too_large past the limits of a schedule. Requires: a solution with
/// parts, without symmetry.
Result<Schedule> schedule_flow(const Topology& topology, const Collective& collective, const FlowProgram& program);

}  // namespace espalier::planners
