#pragma once

// Tested by: tests/unit/sim/link/link_model_test.cpp

#include <cstdint>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/core/network.h"

namespace espalier::sim {

/// By when each resource must have served what it has served so far for a run to be over in time. At the best it serves
/// the rest without a pause, so a run that misses one of these is late long before its time is over.
///
/// Sound for one run alone on a network whose rates never rise: what is left is counted at the nominal rate, and what
/// jitter or a slow link adds to a service moves the deadlines back by as much.
class Deadlines {
 public:
  /// All resources have to be done by `end`. Cost: O(links on the transfers' routes).
  Deadlines(const CompiledSchedule& compiled, const Chunking& chunking, const Network& network,
            std::uint32_t payload_ppm, std::int64_t end);

  /// Whether a run that begins now can be in time.
  [[nodiscard]] bool can_begin(std::int64_t now) const;

  /// A resource serves a chunk. Whether it is in time.
  [[nodiscard]] bool serve(std::uint32_t resource, std::int64_t entry, std::int64_t done) {
    latest_[resource] += done - entry;
    return done <= latest_[resource];
  }

 private:
  std::vector<std::int64_t> latest_;  // by resource
};

}  // namespace espalier::sim
