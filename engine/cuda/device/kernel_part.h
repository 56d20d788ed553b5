#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_ranks_test.cpp

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernel_program.h"

namespace espalier::engine::cuda {

/// What one GPU holds of a device program: the memories that its kernel reads, and the kernel's parameter.
struct KernelPart {
  CudaDevice* gpu = nullptr;
  DriverHandle stream = nullptr;  ///< For what is uploaded.
  std::uint32_t block_count = 0;
  std::vector<std::pair<std::byte*, std::int64_t>> memories;
  KernelCall call;

  /// Memory that `release` gives back. Errors: those of the device.
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space);
  void release();

  /// Copies the program to the GPU: `own` blocks of it, with room for what they keep. `memories_of_ranks` stays the
  /// caller's, and so do reports, stamps and the abort flag, for him to set. Errors: those of the driver.
  Result<void> upload_program(const KernelProgram& program, std::span<const KernelBlock> own);
  template <class Element>
  Result<Element*> upload(std::span<const Element> elements) {
    const auto data = upload_bytes(std::as_bytes(elements));
    if (!data) return tl::unexpected(data.error());
    return reinterpret_cast<Element*>(*data);
  }

 private:
  Result<std::byte*> upload_bytes(std::span<const std::byte> bytes);
};

}  // namespace espalier::engine::cuda
