#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_program_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/cuda/device/cuda_device.h"

namespace espalier::engine::cuda {

/// When a step was carried out, in nanoseconds of this process's CLOCK_MONOTONIC.
struct StepTime {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// A device program made ready on GPUs of this process, to be called again and again. One thread at a time calls.
class GpuProgram {
 public:
  virtual ~GpuProgram() = default;
  GpuProgram(const GpuProgram&) = delete;
  GpuProgram& operator=(const GpuProgram&) = delete;

  /// The GPUs of the ranks, each once, in the order of their first ranks.
  [[nodiscard]] virtual std::vector<CudaDevice*> gpus() const = 0;

  /// Runs the program once and waits until it is done.
  /// Errors: unavailable past the deadline, with what was waited for, and for what the driver says; then every later
  /// call fails, too.
  virtual Result<void> run() = 0;

  /// Gives a call to streams, one for each of `gpus`, behind what was given to them, and does not wait: what these
  /// streams do afterwards finds the result. Calls do not overlap: whoever changes streams orders them by events. May
  /// be captured into a CUDA graph. Errors: those of the driver, and of calls that failed earlier.
  virtual Result<void> enqueue(std::span<const DriverHandle> streams) = 0;
  /// Whether calls that streams have finished went well. Errors: as `run`.
  virtual Result<void> check() = 0;

  /// Of the last call, by step. Requires: it was made ready to record, and the call is over.
  [[nodiscard]] virtual Result<std::vector<StepTime>> step_times() = 0;
  /// How far they may be off.
  [[nodiscard]] virtual std::int64_t clock_error_ns() const = 0;

 protected:
  GpuProgram() = default;
};

}  // namespace espalier::engine::cuda
