#pragma once

// Tested by: tests/unit/sim/model_test.cpp

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier::sim {

/// From `at` on a link has this part of its bandwidth, in millionths; 0: it is dead. What it carries at that moment
/// goes on at the new rate.
struct RateChange {
  LinkId link;
  Picoseconds at;
  std::int32_t rate_ppm = 1'000'000;
};

/// What is not as the topology says.
struct Conditions {
  std::vector<RateChange> changes;
  /// Every service of a chunk takes up to this much longer, in millionths, evenly distributed.
  std::int32_t jitter_ppm = 0;
  std::uint64_t seed = 0;  ///< Of the jitter: the same seed gives the same times.
};

/// Whether a service can take longer than the topology says.
[[nodiscard]] inline bool is_disturbed(const Conditions& conditions) {
  return conditions.jitter_ppm > 0 || !conditions.changes.empty();
}

/// Errors: invalid_input when a link is not of the topology, a part is below 0 or above 1, a moment negative, or jitter
/// not in [0, 100 %].
[[nodiscard]] Result<void> check_conditions(const Conditions& conditions, const Topology& topology);

}  // namespace espalier::sim
