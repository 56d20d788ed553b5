#pragma once

// Tested by: tests/unit/engine/cuda/elements_test.cpp

#include <cstdint>

#include "engine/check/pattern.h"
#include "engine/cuda/kernels/vectors.h"

/// Known data on a device, once for GPUs and hosts. A team is the threads of a grid: besides `index` and `size`, `add`
/// adds to a number that others add to as well.
namespace espalier::engine::cuda {

/// `Stored`: an unsigned number of an element's size.
template <class Stored, class Team>
ESPALIER_KERNEL_CODE void run_pattern_of(const Team& team, const PatternCall& call) {
  std::uint64_t differing = 0;
  ESPALIER_ROLLED
  for (std::uint64_t i = team.index(); i < call.range.length; i += team.size()) {
    const std::uint64_t place = pattern_element(call.range.first + i, call.salt, call.range.shift);
    const auto right = load<Stored>(call.table, place);
    if (call.differing == nullptr) {
      store(call.data, i, right);
    } else if (load<Stored>(call.data, i) != right) {
      ++differing;
    }
  }
  if (differing > 0) team.add(call.differing, differing);
}

template <class Team>
ESPALIER_KERNEL_CODE void run_pattern(const Team& team, const PatternCall& call) {
  switch (call.element_size) {
    case 1: return run_pattern_of<std::uint8_t>(team, call);
    case 2: return run_pattern_of<std::uint16_t>(team, call);
    case 4: return run_pattern_of<std::uint32_t>(team, call);
    default: return run_pattern_of<std::uint64_t>(team, call);
  }
}

}  // namespace espalier::engine::cuda
