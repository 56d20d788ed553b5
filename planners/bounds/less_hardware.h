#pragma once

// Tested by: tests/property/planners/no_schedule_beats_its_bound_test.cpp

#include "planners/bounds/bound.h"

namespace espalier::planners {

struct LostParts;

/// What is left of a machine has no schedule that the whole of it does not have: where the bound of what is left is a
/// floor that the whole's bound is above, it becomes the whole's.
/// Requires: bounds of the same collective among the same ranks.
void keep_to_whole(Bound& rest, const Bound& whole);

/// compute_priced_bound of a machine that has lost parts, kept to that of the whole; null: it has lost nothing.
Result<PricedBound> compute_priced_bound(const BundledNetwork& rest, const LostParts* lost,
                                         const Collective& collective, const PlanContext& context = {});

}  // namespace espalier::planners
