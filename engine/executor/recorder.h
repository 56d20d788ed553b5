#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "schedule/timeline.h"

namespace espalier::engine {

/// A span of this rank, in nanoseconds of its clock.
struct Record {
  TransferId transfer;
  std::uint32_t chunk = 0;
  Phase phase = Phase::send;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// Keeps what happened when at one rank. Room is made before the call, so that recording only writes.
class Recorder {
 public:
  void reserve(std::size_t records) {
    const std::size_t needed = records_.size() + records;
    if (needed > records_.capacity()) records_.reserve(std::max(needed, 2 * records_.capacity()));
  }
  void add(const Record& record) { records_.push_back(record); }
  [[nodiscard]] const std::vector<Record>& records() const { return records_; }
  void clear() { records_.clear(); }

 private:
  std::vector<Record> records_;
};

}  // namespace espalier::engine
