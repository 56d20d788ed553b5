#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <memory>
#include <vector>

#include "base/result.h"
#include "planners/bounds/bound_prices.h"
#include "planners/bundled_network.h"
#include "planners/plan_context.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A bound, with the prices that prove it where no cut and no count does.
struct PricedBound {
  Bound bound;
  std::vector<BoundPrice> prices;
  std::shared_ptr<const AllReduceProgram> solution = nullptr;  ///< As in PlanContext.
};

/// compute_bound with its prices and its solution.
Result<PricedBound> compute_priced_bound(const BundledNetwork& network, const Collective& collective,
                                         const PlanContext& context = {});

/// The proven limit of a collective on a topology (docs/bounds.md has each formula and its proof).
/// Errors: infeasible when a rank that must be reached cannot be, naming both.
Result<Bound> compute_bound(const Topology& topology, const Collective& collective, const PlanContext& context = {});

}  // namespace espalier::planners
