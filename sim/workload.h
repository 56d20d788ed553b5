#pragma once

#include <cstdint>

#include "base/result.h"
#include "schedule/chunking.h"
#include "schedule/schedule.h"
#include "sim/network.h"

namespace espalier::sim {

/// The most steps (chunks times the links, backplanes and reductions that they pass) of one simulation.
inline constexpr std::uint64_t max_chunk_steps = 4'000'000'000;

/// The most chunks of all transfers together, and of one.
inline constexpr std::uint64_t max_chunks = 2'000'000'000;
inline constexpr std::uint32_t max_chunks_per_transfer = std::uint32_t{1} << 24U;

/// The most steps of a simulation that records its timeline or critical path: about 10 GB.
inline constexpr std::uint64_t max_recorded_steps = 100'000'000;

/// Counts the steps of a simulation and proves, in 128 bits, that all its times fit: one thing after the other is the
/// longest it can take.
/// Errors: too_large past `max_simulated_time`, `max_steps` or the limits on chunks.
/// Requires: `check_transfers`.
Result<std::uint64_t> check_workload(const Schedule& schedule, const Chunking& chunking, const Network& network,
                                     std::uint64_t max_steps);

/// Errors: invalid_input when a transfer names a slice or route that the schedule does not have.
Result<void> check_transfers(const Schedule& schedule);

}  // namespace espalier::sim
