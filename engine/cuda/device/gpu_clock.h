#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include "base/element.h"
#include "base/result.h"
#include "engine/device/device.h"

namespace espalier::engine::cuda {

class CudaDevice;

/// Compares a GPU's global timer with CLOCK_MONOTONIC: the interpreter answers the host's counter a few times over
/// pinned memory and stamps when; the quickest answer counts. Type and operation say which kernel. Errors: those of the
/// driver.
Result<DeviceClock> compare_clocks(CudaDevice& gpu, ElementType type, ReduceOperation operation);

}  // namespace espalier::engine::cuda
