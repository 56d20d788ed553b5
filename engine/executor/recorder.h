#pragma once

// Tested by: tests/unit/engine/executor/tick_clock_test.cpp

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "engine/device/device.h"
#include "engine/executor/tick_clock.h"
#include "schedule/timeline/timeline.h"

namespace espalier::engine {

/// The rank that keeps the record.
inline constexpr std::uint32_t own_rank = UINT32_MAX;

/// A span of this rank, in nanoseconds of its CLOCK_MONOTONIC.
struct Record {
  TransferId transfer;
  std::uint32_t chunk = 0;
  Phase phase = Phase::send;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint32_t rank = own_rank;  ///< Of the communicator, at which it was.
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
  /// A span in nanoseconds of the device's clock; a recorder has one device.
  void add_of_device(const Record& record, Device& device) {
    device_ = &device;
    of_device_.push_back(record);
  }
  void clear() {
    size_ = 0;
    of_device_.clear();
    first_ = clock_.anchor();
  }

  /// What was kept since the last clear. The device's clock is compared with the host's now. Errors: those of the
  /// device.
  [[nodiscard]] Result<std::vector<Record>> records() {
    const ClockAnchor last = clock_.anchor();
    std::vector<Record> records(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(size_));
    for (Record& record : records) {
      record.begin_ns = ns_at(record.begin_ns, first_, last);
      record.end_ns = ns_at(record.end_ns, first_, last);
    }
    if (of_device_.empty()) return records;
    const auto clock = device_->compare_clock();
    if (!clock) return tl::unexpected(clock.error());
    device_clock_error_ns_ = clock->error_ns;
    for (Record record : of_device_) {
      record.begin_ns -= clock->ahead_ns;
      record.end_ns -= clock->ahead_ns;
      records.push_back(record);
    }
    return records;
  }
  /// The most that the device's spans were off when the records were asked for.
  [[nodiscard]] std::int64_t device_clock_error_ns() const { return device_clock_error_ns_; }

 private:
  TickClock clock_;
  ClockAnchor first_ = clock_.anchor();
  std::vector<Record> kept_;  ///< Times in ticks; the first `size_` count.
  std::size_t size_ = 0;
  std::vector<Record> of_device_;
  Device* device_ = nullptr;
  std::int64_t device_clock_error_ns_ = 0;
};

}  // namespace espalier::engine
