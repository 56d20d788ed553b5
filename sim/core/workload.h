#pragma once

// Tested by: tests/unit/sim/simulate_test.cpp

#include <cstdint>

#include "base/result.h"
#include "schedule/chunking.h"
#include "schedule/schedule.h"
#include "sim/conditions.h"
#include "sim/core/network.h"
#include "sim/limits.h"

namespace espalier::sim {

class CompiledSchedule;
struct RunOptions;

/// What a run amounts to.
struct Workload {
  std::uint64_t steps = 0;  ///< Chunks times the resources that they pass.
  __int128 time = 0;        ///< In picoseconds: no run takes longer, alone on an undisturbed network.
};

/// Cuts a schedule for one run. Errors: invalid_input when the size does not fit the layout, a chunk is smaller than an
/// element, or the payload is not a part of 1; as Layout::make.
Result<Chunking> cut_into_chunks(const Schedule& schedule, const RunOptions& options);

/// Counts a run's steps and sums its times, one thing after the other, in 128 bits.
/// Errors: too_large past `max_steps` or the limits on chunks.
Result<Workload> check_workload(const CompiledSchedule& compiled, const Network& network, const Chunking& chunking,
                                std::int32_t payload_ppm, std::uint64_t max_steps);

/// Proves that all times of some runs fit: one run after the other is the longest they can take.
class WorkLimit {
 public:
  explicit WorkLimit(const Conditions& conditions) : jitter_ppm_(conditions.jitter_ppm) {}

  /// Errors: too_large past max_simulated_time.
  Result<void> add(const Workload& work);

 private:
  std::int32_t jitter_ppm_;
  __int128 time_ = 0;
};

/// The bytes that carry some payload: more than it where a protocol adds flags. Requires: payload_ppm in 1 to
/// 1'000'000.
[[nodiscard]] inline std::int64_t on_the_wire(std::int64_t payload, std::uint32_t payload_ppm) {
  if (payload_ppm == whole_ppm) return payload;
  return static_cast<std::int64_t>((static_cast<__int128>(payload) * 1'000'000 + payload_ppm - 1) / payload_ppm);
}

/// Errors: invalid_input when a transfer names a slice or route that the schedule does not have.
Result<void> check_transfers(const Schedule& schedule);

}  // namespace espalier::sim
