#pragma once

// Tested by: tests/property/sim/ring_walk_test.cpp

#include <cstddef>
#include <span>

#include "base/result.h"
#include "schedule/trees/ring_walk.h"
#include "sim/simulate.h"

namespace espalier::sim {

/// What a walk was found to be.
struct RingReport {
  Report report;
  /// The places whose times had to be worked out: all, or one period of hops that repeat round the ring; of several
  /// rings the sum.
  std::size_t places = 0;
  /// The stored schedule gives the same. False where chunks without bytes, or messages that cost time, would overtake
  /// others there: then shards go one after the other here.
  bool is_stored_form = true;
};

/// The `link` model on a ring that is walked, never stored: the same times and loads as `simulate` gives for the stored
/// schedule, to the picosecond and with the same jitter (but see RingReport::is_stored_form). A chunk asks for its
/// first resource behind those of the shards before it, because these came over the same hops before it. Where hops
/// repeat with a period round the ring (in rates, latencies and overheads), all shards have equal bytes and nothing is
/// disturbed, places one period apart have the same times in every step (by induction over the steps: a transfer waits
/// for the place before it and for its own place, one step earlier), and only one period is worked out. Errors: those
/// of check_ring_walk and Simulator::run; unsupported where two hops share a link, backplane or reduction, or a chunk
/// queues on its way, because then the order of asking matters; also for a timeline or critical path. Cost: a few
/// nanoseconds per chunk and resource of the places worked out; 16 bytes per place and chunk of a shard.
///
/// Several rings carry a part of the buffer each, in proportion to their weights, and are worked out one by one: they
/// must not share anything either, copy engines among it.
Result<RingReport> simulate_rings(std::span<const RingWalk> walks, const Topology& topology, const Options& options,
                                  const CopyEngines& engines = {});

/// As simulate_rings, for one.
Result<RingReport> simulate_ring(const RingWalk& walk, const Topology& topology, const Options& options,
                                 const CopyEngines& engines = {});

}  // namespace espalier::sim
