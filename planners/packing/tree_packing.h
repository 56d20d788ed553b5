#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "planners/plan_context.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"

namespace espalier {

/// Trees that span all ranks and together load no arc past its capacity at the best rate that this way of packing
/// reaches: on networks whose switches are balanced that is the bound (cut_rate.h), on others it may be less.
///
/// `pack_all_roots`: trees from every rank, of equal total weight or, where `shares` has a number per rank, of weights
/// in their ratio; `pack_one_root`: from one, where up to `gap` of the time may be lost if more than 16 trees would be
/// needed without. Out-trees when the network is read forward, in-trees when it is read
/// reversed. Requires: every rank reaches every other; two ranks or more.
/// Errors: too_large past the written limits on numbers and on work, or unsupported when balancing the switches would
/// cut ranks apart; both name what works instead.
Result<std::vector<Arborescence>> pack_all_roots(const Topology& topology, Direction direction,
                                                 std::span<const std::int64_t> shares = {},
                                                 const PlanContext& context = {});
Result<std::vector<Arborescence>> pack_one_root(const Topology& topology, Direction direction, Rank root,
                                                const Rational& gap, const PlanContext& context = {});

}  // namespace espalier
