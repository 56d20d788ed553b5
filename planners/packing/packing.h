#pragma once

#include "base/rational.h"
#include "base/result.h"
#include "planners/plan_context.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// Plans with a packing of spanning trees of the best possible throughput (docs/packing.md).
///
/// all_gather, reduce_scatter, broadcast and reduce load no link past the bound where every switch takes in as much as
/// it gives out (broadcast and reduce up to a thousandth past it where that takes more than 16 trees otherwise), gather
/// and scatter everywhere; all_reduce is a reduce-scatter and an all-gather with the same roots, or the trees of
/// all_reduce_forest.h where those load the network less. Where switches are unbalanced or a rank has a backplane, the
/// load may exceed the bound, exactly as compute_loads says. Errors: unsupported for all_to_all and send_recv;
/// infeasible when a rank cannot reach another; too_large past the limits of tree_packing.h.
Result<Schedule> plan_packing(const Topology& topology, const Collective& collective, const PlanContext& context = {});

/// The same with another `gap`: the part of its time that a broadcast or reduce may lose where it would need more than
/// 16 trees without. plan_packing allows a thousandth; with 0 the load is the bound's, however many trees that takes.
Result<Schedule> plan_packing_within(const Topology& topology, const Collective& collective, const Rational& gap,
                                     const PlanContext& context = {});

}  // namespace espalier
