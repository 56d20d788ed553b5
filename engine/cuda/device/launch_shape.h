#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <algorithm>
#include <cstdint>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {

inline constexpr unsigned non_blocking_stream = 1;   ///< CU_STREAM_NON_BLOCKING.
inline constexpr unsigned event_without_timing = 2;  ///< CU_EVENT_DISABLE_TIMING.

/// Thread blocks for a kernel that goes over so many bytes: no more than a GPU runs at a time.
inline unsigned blocks_for(const CudaDevice& gpu, std::uint64_t bytes) {
  constexpr std::uint64_t bytes_per_block = std::uint64_t{threads_per_block} * 16;
  const std::uint64_t most = std::uint64_t{gpu.multiprocessors()} * blocks_per_multiprocessor;
  return static_cast<unsigned>(std::clamp<std::uint64_t>((bytes + bytes_per_block - 1) / bytes_per_block, 1, most));
}

}  // namespace espalier::engine::cuda
