#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include "base/result.h"
#include "planners/bounds/bound.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/bound.h"

namespace espalier::planners {

// Bounds of the collectives whose blocks are all different, so that nothing is gained by copying: the optimum of a
// concurrent flow, routes free, relaying through ranks allowed. Exact (a linear program solved in fractions) on
// machines within the written limits, and a floor, which `what` says, beyond them. Where one cut already proves the
// optimum, the bound names that cut. They hold where switches copy or add: no block has a sibling. docs/bounds.md has
// the formula and the proof.

/// Every rank sends a block of S/N bytes to every other rank.
/// Errors: infeasible when a rank cannot reach another, naming both.
/// Cost: up to 16 ranks well under a second; 128 ranks some tenths; beyond that a few shortest paths from every rank.
Result<PricedBound> all_to_all_bound(const PlanningProblem& problem, const PlanContext& context = {});

/// all_to_all by a traffic matrix. On a fabric of levels, where a balanced plan (blocks/balance.h) reaches a cut, that
/// cut is the bound and no program is solved; else exact up to 64 ranks, near the limit up to 512, and beyond a floor.
/// Errors: as all_to_all_bound.
Result<PricedBound> matrix_bound(const PlanningProblem& problem, const Collective& collective,
                                 const PlanContext& context = {});

/// Every rank sends S bytes to the next one, the last to the first. Errors and cost as for all_to_all_bound.
Result<PricedBound> send_recv_bound(const PlanningProblem& problem, const PlanContext& context = {});

}  // namespace espalier::planners
