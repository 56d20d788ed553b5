#pragma once

// Tested by: tests/unit/sim/simulate_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/conditions.h"
#include "sim/model.h"

namespace espalier::sim {

/// What a run came to.
struct RunTotals {
  std::int64_t elapsed = 0;
  std::uint64_t events = 0;
  std::vector<LinkUse> links;  ///< By link id.
};

/// The `link` model without an event queue, for programs none of whose resources serves two lanes: then no chunk ever
/// asks before another one that may go first, and since a transfer waits for earlier ones only, program order is an
/// order to work everything out in. Gives what LinkModel gives, to the picosecond; nothing when a chunk would have to
/// queue on a lane of several routes, or past max_contention_free_chunks.
/// All ranks enter at `start`. Requires: a compiled schedule that does not share resources; checked workload.
/// Cost: a few operations per chunk and resource, or per chunk where chunks go as runs (program_order.h); 8 bytes per
/// chunk.
std::optional<RunTotals> run_contention_free(const CompiledSchedule& compiled, const Chunking& chunking,
                                             const Network& network, const Conditions& conditions,
                                             std::int32_t payload_ppm, std::int64_t start);

/// The `fair` model in the same way: where nothing is shared every flow has the full rate of its slowest resource all
/// the time. Gives what FairModel gives, to the picosecond; nothing when rates change, or past
/// max_contention_free_chunks. All ranks enter at `start`. Requires: a compiled schedule that does not share resources;
/// checked workload. Cost: as run_contention_free.
std::optional<RunTotals> run_fair_contention_free(const CompiledSchedule& compiled, const Chunking& chunking,
                                                  const Network& network, const Conditions& conditions,
                                                  std::int32_t payload_ppm, std::int64_t start);

}  // namespace espalier::sim
