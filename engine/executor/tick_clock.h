#pragma once

// Tested by: tests/unit/engine/executor/tick_clock_test.cpp

#include <cstdint>

#include "engine/executor/clock.h"

namespace espalier::engine {

/// A moment on both clocks.
struct ClockAnchor {
  std::int64_t ticks = 0;
  std::int64_t ns = 0;  ///< Of CLOCK_MONOTONIC.
};

/// This machine's time as cheaply as it can be read: the processor's time stamp counter where the kernel itself keeps
/// time by it (then it runs evenly and alike on all cores), else CLOCK_MONOTONIC, whose reading costs twice as much and
/// waits for all loads before it. A reading may run ahead of loads under way, by some tens of nanoseconds.
class TickClock {
 public:
  TickClock();

  [[nodiscard]] std::int64_t now() const {
#if defined(__x86_64__)
    if (counts_ticks_) return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#endif
    return now_ns();
  }
  /// False: ticks are nanoseconds of CLOCK_MONOTONIC.
  [[nodiscard]] bool counts_ticks() const { return counts_ticks_; }

  /// Now on both clocks, as close together as a few tries bring them.
  [[nodiscard]] ClockAnchor anchor() const;

 private:
  bool counts_ticks_ = false;
};

/// Nanoseconds of CLOCK_MONOTONIC at `ticks`, on the line through both anchors; at the anchors exactly.
/// Requires: `first.ticks <= last.ticks`.
std::int64_t ns_at(std::int64_t ticks, const ClockAnchor& first, const ClockAnchor& last);

}  // namespace espalier::engine
