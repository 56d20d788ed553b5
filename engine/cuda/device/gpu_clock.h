#pragma once

#include <cstdint>

#include "base/element.h"
#include "base/result.h"

namespace espalier::engine::cuda {

class CudaDevice;

/// A GPU's global timer against CLOCK_MONOTONIC.
struct GpuClock {
  std::int64_t ahead_ns = 0;  ///< The timer less the clock.
  std::int64_t error_ns = 0;  ///< The most that this is off.
};

/// Compares the two: the interpreter answers the host's counter a few times over pinned memory and stamps when; the
/// quickest answer counts. Type and operation say which kernel. Errors: those of the driver.
Result<GpuClock> compare_clocks(CudaDevice& gpu, ElementType type, ReduceOperation operation);

}  // namespace espalier::engine::cuda
