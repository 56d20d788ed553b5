#pragma once

// Tested by: tests/unit/schedule/timeline/run_report_test.cpp

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/units.h"
#include "schedule/chunking.h"
#include "schedule/collective.h"
#include "schedule/timeline/timeline.h"

namespace espalier {

/// Of a run that takes as long as it takes.
inline constexpr Picoseconds no_deadline{std::numeric_limits<std::int64_t>::max()};

/// What one execution of a schedule gave, simulated or real.
struct RunReport {
  Bytes size;               ///< Message size S.
  Bytes chunk;              ///< The largest chunk that was allowed.
  std::uint32_t ahead = 0;  ///< Pacing::ahead.
  Picoseconds elapsed;      ///< From the start until the last byte arrived.
  std::optional<Timeline> timeline;
  std::int64_t element_size = 4;  ///< Bytes per element.

  /// S / elapsed, in bytes per second; 0 for an empty run.
  [[nodiscard]] double algbw() const;
  /// algbw times the nccl-tests factor of the collective.
  [[nodiscard]] double busbw(const Collective& collective) const;
  /// The part of the bound's throughput that was reached, as `part_of_bound` (schedule/parts.h).
  [[nodiscard]] double of_bound(const Rational& time_per_byte, const Collective& collective) const;
};

}  // namespace espalier
