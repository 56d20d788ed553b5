#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_ranks_test.cpp

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/gpu_program.h"
#include "engine/cuda/device/kernel_part.h"
#include "engine/cuda/kernel_program.h"
#include "engine/cuda/run_on_threads.h"

namespace espalier::engine::cuda {

/// A device program on GPUs of this process: one cooperative kernel per GPU runs the blocks of all ranks that are
/// there. One thread at a time calls.
class GpuRanks final : public GpuProgram {
 public:
  /// `gpus`: of each rank. Buffers are memory of those, aligned to the element's size. Records steps' times if asked
  /// to. Requires: a program that verifies, of the call's element size; GPUs and buffers outlive this. Errors:
  /// too_large where blocks do not fit a GPU at a time; unsupported without peer access; those of the driver.
  static Result<std::unique_ptr<GpuProgram>> prepare(std::span<CudaDevice* const> gpus, const DeviceProgram& program,
                                                     std::span<const RankBuffers> buffers, const DeviceCall& call,
                                                     bool records);
  ~GpuRanks() override;

  [[nodiscard]] std::vector<CudaDevice*> gpus() const override;
  Result<void> run() override;
  Result<void> enqueue(std::span<const DriverHandle> streams) override;
  Result<void> check() override;
  /// The GPUs' timers are compared with the clock of this process.
  [[nodiscard]] Result<std::vector<StepTime>> step_times() override;
  [[nodiscard]] std::int64_t clock_error_ns() const override { return clock_error_ns_; }

 private:
  /// What one GPU holds; the stream is that of `run`, too.
  struct Part : KernelPart {
    DriverHandle kernel = nullptr;
  };

  GpuRanks(const DeviceProgram& program, const DeviceCall& call) : program_(program), call_(call) {}
  Result<void> set_up(std::span<CudaDevice* const> gpus, std::span<const RankBuffers> buffers, bool records);
  Result<void> find_gpus(std::span<CudaDevice* const> gpus);
  Result<void> place_counters(std::vector<std::uint32_t*>& counters);
  Result<void> fill(Part& part, const KernelProgram& lowered, std::span<const KernelMemory> memories, bool records);
  Result<void> fail_for_good(Error error);
  Result<void> await();
  Result<void> find_late_block() const;

  DeviceProgram program_;
  DeviceCall call_;
  std::vector<Part> parts_;
  std::vector<std::size_t> part_of_;  ///< By rank.
  KernelReport* reports_ = nullptr;   ///< Pinned, as the flag.
  std::uint32_t* abort_flag_ = nullptr;
  std::optional<Error> failure_;
  std::int64_t clock_error_ns_ = 0;
};

}  // namespace espalier::engine::cuda
