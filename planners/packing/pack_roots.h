#pragma once

// Tested by: tests/unit/planners/packing/reduce/deal_planes_test.cpp

#include <vector>

#include "base/result.h"
#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// Trees that span all ranks and together load no arc past its capacity at the best rate that this packing
/// reaches: on networks whose switches are balanced that is the bound (cut_rate.h), on others it may be less.
///
/// The trees' weights are the same in all for every root, or in the ratio of the problem's shares. Out-trees when the
/// network is read forward, in-trees when it is read reversed.
/// Errors: too_large past the written limits on numbers and on work, or unsupported when balancing the switches would
/// cut ranks apart; both name what works instead.
Result<std::vector<Arborescence>> pack_roots(const PackingProblem& problem);

}  // namespace espalier::planners
