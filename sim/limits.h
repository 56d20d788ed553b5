#pragma once

// Tested by: tests/unit/sim/model_test.cpp

#include <cstdint>
#include <limits>

namespace espalier::sim {

/// One, in millionths: what parts are counted in.
inline constexpr std::int32_t whole_ppm = 1'000'000;

/// The largest simulated time, about 53 days; every moment of a simulation fits a 64-bit integer with room to add.
inline constexpr std::int64_t max_simulated_time = std::int64_t{1} << 62;

/// The latest moment at which a rank may begin with a run.
inline constexpr std::int64_t latest_entry = max_simulated_time / 2;

/// A moment after all others.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// The most steps (chunks times the links, backplanes and reductions that they pass) of one run.
inline constexpr std::uint64_t max_chunk_steps = 4'000'000'000;

/// The most steps of a ring that is walked; a minute each 10^10 or so.
inline constexpr std::uint64_t max_walked_steps = 100'000'000'000;

/// The most chunks of all transfers together, and of one.
inline constexpr std::uint64_t max_chunks = 2'000'000'000;
inline constexpr std::uint32_t max_chunks_per_transfer = std::uint32_t{1} << 24U;

/// The most steps of a simulation that records its timeline or critical path: about 20 GB.
inline constexpr std::uint64_t max_recorded_steps = 100'000'000;

/// The least part of what is on the wire that is payload, in millionths.
inline constexpr std::int32_t min_payload_ppm = 10'000;

/// The most transfers of all runs together.
inline constexpr std::uint64_t max_run_transfers = std::numeric_limits<std::uint32_t>::max();

}  // namespace espalier::sim
