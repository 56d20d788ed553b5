#pragma once

#include "base/result.h"
#include "planners/plan_context.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The proven limit of a collective on a topology (docs/bounds.md has each formula and its proof).
/// Errors: infeasible when a rank that must be reached cannot be, naming both.
Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context = {});

}  // namespace espalier::planners
