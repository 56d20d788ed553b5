#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_measure_test.cpp

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/cuda/device_program.h"
#include "schedule/timeline/timeline.h"

namespace espalier::engine::cuda {

/// A chunk at its destination, and the steps that bring it there: one, or one of each block that moves a part of it.
struct BroughtChunk {
  Rank rank;  ///< Its destination.
  TransferId transfer;
  std::uint32_t chunk = 0;
  Phase phase = Phase::recv;
  std::vector<std::uint32_t> steps;

  /// From the first begin of a step to the last end. `times_of(step)` is a pair of integers.
  template <class TimesOf>
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> time(const TimesOf& times_of) const {
    std::pair<std::int64_t, std::int64_t> whole = {std::numeric_limits<std::int64_t>::max(), 0};
    for (const std::uint32_t step : steps) {
      const auto [begin, end] = times_of(step);
      whole = {std::min<std::int64_t>(whole.first, begin), std::max<std::int64_t>(whole.second, end)};
    }
    return whole;
  }
};

/// The chunks that kernels bring to their destinations, or that the blocks of one rank do. What fills a mailbox
/// brings nothing: a chunk's steps are those that read it.
std::vector<BroughtChunk> find_brought_chunks(const DeviceProgram& program, std::optional<Rank> by = {});

}  // namespace espalier::engine::cuda
