#pragma once

#include <vector>

#include "base/result.h"
#include "planners/ring/ring.h"
#include "schedule/ring_walk.h"

namespace espalier {

/// The rings of `find_rings` to be walked instead of stored, for machines whose stored rings would not fit memory.
/// Errors: unsupported for collectives other than all_reduce, reduce_scatter and all_gather with equal shards, and
/// without a cycle through all ranks. Cost: find_rings.
Result<std::vector<RingWalk>> plan_ring_walks(const Topology& topology, const Collective& collective);

}  // namespace espalier
