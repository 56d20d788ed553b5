#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// Makes a schedule for a collective on a topology. Pure: the same input gives the same schedule, byte for byte.
/// Errors: unsupported, when this planner does not make this collective or not on this graph, naming what would work;
/// infeasible, when no schedule exists; too_large past a written limit.
using PlanFunction = std::function<Result<Schedule>(const Topology&, const Collective&)>;

struct Planner {
  std::string_view name;     ///< What `-a` takes.
  std::string_view summary;  ///< One line for help.
  PlanFunction plan;
};

/// All planners, in the order in which tables list them.
std::span<const Planner> all_planners();

/// Errors: invalid_input, with the nearest name.
Result<Planner> find_planner(std::string_view name);

/// Plans with one planner and verifies the result; a breach is a bug of ours.
Result<Schedule> plan_unbounded(const Topology& topology, const Collective& collective, const Planner& planner);

/// As `plan_unbounded`, with the bound of the collective set.
Result<Schedule> plan(const Topology& topology, const Collective& collective, const Planner& planner);

}  // namespace espalier
