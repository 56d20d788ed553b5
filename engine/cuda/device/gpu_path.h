#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_program_test.cpp

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/cuda/device/cuda_device.h"

namespace espalier::engine::cuda {

/// How the ranks of a process run a device program.
enum class GpuPath {
  kernels,  ///< GpuRanks: a kernel per GPU interprets it.
  copies,   ///< HostDrivenRanks: the host gives copies and reductions to streams.
};

struct PathChoice {
  GpuPath path = GpuPath::kernels;
  std::string reason;
};

/// What was asked for, or else kernels, and copies where kernels cannot: a GPU without cooperative launches, or one
/// that does not reach another's memory. Errors: those of the driver.
Result<PathChoice> choose_path(const std::vector<std::unique_ptr<CudaDevice>>& gpus, std::optional<GpuPath> asked_for);

}  // namespace espalier::engine::cuda
