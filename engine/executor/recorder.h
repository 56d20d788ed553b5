#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "engine/executor/tick_clock.h"
#include "schedule/timeline/timeline.h"

namespace espalier::engine {

/// A span of this rank, in nanoseconds of its CLOCK_MONOTONIC.
struct Record {
  TransferId transfer;
  std::uint32_t chunk = 0;
  Phase phase = Phase::send;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Keeps what happened when at one rank. Room is made, and its memory touched, before a call, so that recording only
/// reads a counter and writes; counts become nanoseconds when the records are asked for.
class Recorder {
 public:
  void reserve(std::size_t records) {
    const std::size_t needed = size_ + records;
    if (needed > kept_.size()) kept_.resize(std::max(needed, 2 * kept_.size()));
  }
  /// The moment now, in ticks.
  [[nodiscard]] std::int64_t now() const { return clock_.now(); }
  /// Requires: room reserved.
  void add(TransferId transfer, std::uint32_t chunk, Phase phase, std::int64_t begin, std::int64_t end) {
    kept_[size_++] = {transfer, chunk, phase, begin, end};
  }
  void clear() {
    size_ = 0;
    first_ = clock_.anchor();
  }

  /// What was kept since the last clear.
  [[nodiscard]] std::vector<Record> records() const {
    const ClockAnchor last = clock_.anchor();
    std::vector<Record> records(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (Record& record : records) {
      record.begin_ns = ns_at(record.begin_ns, first_, last);
      record.end_ns = ns_at(record.end_ns, first_, last);
    }
    return records;
  }

 private:
  TickClock clock_;
  ClockAnchor first_ = clock_.anchor();
  std::vector<Record> kept_;  ///< Times in ticks; the first `size_` count.
  std::size_t size_ = 0;
};

}  // namespace espalier::engine
