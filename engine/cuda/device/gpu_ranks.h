#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernel_program.h"
#include "engine/cuda/run_on_threads.h"

namespace espalier::engine::cuda {

/// When a step was carried out, in nanoseconds of this process's CLOCK_MONOTONIC.
struct StepTime {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// A device program on GPUs of this process: one cooperative kernel per GPU runs the blocks of all ranks that are
/// there. One thread at a time calls.
class GpuRanks {
 public:
  /// `gpus`: of each rank. Buffers are memory of those, aligned to the element's size. Records steps' times if asked
  /// to. Requires: a program that verifies, of the call's element size; GPUs and buffers outlive this. Errors:
  /// too_large where blocks do not fit a GPU at a time; unsupported without peer access; those of the driver.
  static Result<std::unique_ptr<GpuRanks>> prepare(std::span<CudaDevice* const> gpus, const DeviceProgram& program,
                                                   std::span<const RankBuffers> buffers, const DeviceCall& call,
                                                   bool records);
  ~GpuRanks();
  GpuRanks(const GpuRanks&) = delete;
  GpuRanks& operator=(const GpuRanks&) = delete;

  /// Runs the program once on all GPUs and waits until it is done.
  /// Errors: unavailable past the deadline, with the block and what it waited for, and for what the driver says; then
  /// every later run fails, too.
  Result<void> run();

  /// Of the last run, by step. The GPUs' timers were compared with the clock of this process around a copy.
  [[nodiscard]] Result<std::vector<StepTime>> step_times();
  /// How far they may be off.
  [[nodiscard]] std::int64_t clock_error_ns() const { return clock_error_ns_; }

 private:
  /// What one GPU holds.
  struct Part {
    CudaDevice* gpu = nullptr;
    std::uint32_t block_count = 0;
    DriverHandle stream = nullptr;
    DriverHandle kernel = nullptr;
    std::vector<std::pair<std::byte*, std::int64_t>> memories;
    KernelCall call;
  };

  GpuRanks(const DeviceProgram& program, const DeviceCall& call) : program_(program), call_(call) {}
  Result<void> set_up(std::span<CudaDevice* const> gpus, std::span<const RankBuffers> buffers, bool records);
  Result<void> find_gpus(std::span<CudaDevice* const> gpus);
  Result<void> place_counters(std::vector<std::uint32_t*>& counters);
  Result<void> fill(Part& part, const KernelProgram& lowered, std::span<const KernelMemory> memories, bool records);
  Result<std::byte*> allocate(Part& part, std::int64_t bytes, MemorySpace space);
  template <class Element>
  Result<Element*> upload(Part& part, std::span<const Element> elements);
  Result<void> await();
  Result<void> find_late_block() const;

  DeviceProgram program_;
  DeviceCall call_;
  std::vector<Part> parts_;
  std::vector<std::size_t> part_of_;  ///< By rank.
  KernelReport* reports_ = nullptr;   ///< Pinned, as the flag.
  std::uint32_t* abort_flag_ = nullptr;
  std::uint32_t runs_ = 0;
  std::optional<Error> failure_;
  std::int64_t clock_error_ns_ = 0;
};

}  // namespace espalier::engine::cuda
