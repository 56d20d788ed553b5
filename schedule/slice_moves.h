#pragma once

// Tested by: tests/unit/schedule/dependencies_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/schedule.h"

namespace espalier {

/// For each slice the transfers that move it, in program order. Requires: ids in range (rule S1).
/// Cost: four bytes per slice move and eight per slice.
class SliceMoves {
 public:
  explicit SliceMoves(const Schedule& schedule);

  [[nodiscard]] std::span<const TransferId> of(std::size_t slice) const {
    return std::span(transfers_).subspan(offsets_[slice], offsets_[slice + 1] - offsets_[slice]);
  }
  /// Those of all slices, slice by slice.
  [[nodiscard]] std::span<const TransferId> all() const { return transfers_; }
  /// Where a slice's begin among those of all.
  [[nodiscard]] std::size_t begin(std::size_t slice) const { return offsets_[slice]; }

 private:
  std::vector<std::uint64_t> offsets_;
  std::vector<TransferId> transfers_;
};

}  // namespace espalier
