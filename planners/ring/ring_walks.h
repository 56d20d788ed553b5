#pragma once

// Tested by: tests/property/planners/any_network_test.cpp

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "planners/chunking.h"
#include "planners/ring/ring.h"
#include "schedule/trees/ring_walk.h"

namespace espalier::planners {

/// Rings without their schedule, and what the choice of their chunk needs to know.
struct WalkedRings {
  std::vector<RingWalk> walks;
  ChunkModel chunks;
  /// What is stored deals whole shards to the rings instead (deals_shards): slower, with fewer transfers.
  bool is_dealt = false;
};

/// From this many ranks on walking a ring is worth asking for; with fewer its schedule is stored in no time.
inline constexpr std::size_t min_walked_ranks = 128;

/// From this many ranks on rings are walked also where that is not exactly what the stored schedule gives, which would
/// have over eight million transfers.
inline constexpr std::size_t max_stored_ranks = 2048;

/// The rings that `plan_ring` stores, or deals shards to, to be walked instead.
/// Errors: as plan_ring; unsupported for collectives other than all_reduce, reduce_scatter and all_gather with equal
/// shards. Cost: find_rings.
Result<WalkedRings> plan_ring_walks(const Topology& topology, const Collective& collective);

}  // namespace espalier::planners
