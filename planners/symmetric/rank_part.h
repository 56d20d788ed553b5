#pragma once

// Tested by: tests/property/engine/rank_part_test.cpp

#include "base/result.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {

/// The transfers of a symmetric plan that begin or end at one rank, in the order of the whole plan, with its slices and
/// channels. The parts of all ranks together have every transfer of the whole plan twice, once at each end.
/// Errors: too_large past the limits of schedule.h. Cost: twice the transfers of rank 0's shard.
Result<Schedule> part_of_rank(const SymmetricPlan& plan, const Topology& topology, Rank rank);

/// The same of a schedule that is all there.
Schedule part_of_rank(const Schedule& schedule, Rank rank);

/// What a rank executes its part with: that, the transfers at its peers, whose buffers it writes to, and all that these
/// wait for. An engine compiles from it, for this rank, the very program that it compiles from the whole plan.
/// Errors: as above. Cost: transfers of rank 0's shard times the peers, and times the height of its trees.
Result<Schedule> needs_of_rank(const SymmetricPlan& plan, const Topology& topology, Rank rank);

}  // namespace espalier::planners
