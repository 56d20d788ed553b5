#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_program_test.cpp

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/cuda/device/gpu_program.h"
#include "engine/cuda/run_on_threads.h"

namespace espalier::engine::cuda {

/// A device program that the host gives to streams step by step: copies by the GPUs' copy engines, reductions by a
/// kernel each, an event behind every step that others wait for. It needs neither cooperative launches nor peer access:
/// what lies on another GPU is copied before it is added. A block of the program is a stream.
class HostDrivenRanks final : public GpuProgram {
 public:
  /// As GpuRanks::prepare. Requires: a program without mailboxes and destinations. Errors: those of the driver.
  static Result<std::unique_ptr<GpuProgram>> prepare(std::span<CudaDevice* const> gpus, const DeviceProgram& program,
                                                     std::span<const RankBuffers> buffers, const DeviceCall& call);
  ~HostDrivenRanks() override;

  [[nodiscard]] std::vector<CudaDevice*> gpus() const override { return gpus_; }
  Result<void> run() override;
  Result<void> enqueue(std::span<const DriverHandle> streams) override;
  Result<void> check() override;
  /// Errors: unsupported: the host does not see when a stream begins a step.
  [[nodiscard]] Result<std::vector<StepTime>> step_times() override;
  [[nodiscard]] std::int64_t clock_error_ns() const override { return 0; }

 private:
  /// What a block of the program has.
  struct Work {
    CudaDevice* gpu = nullptr;
    DriverHandle stream = nullptr;
    DriverHandle ended = nullptr;  ///< An event.
    std::byte* staging = nullptr;  ///< For what another GPU holds.
    std::int64_t staging_bytes = 0;
    std::uint32_t next_step = 0;  ///< Within the block.
  };

  HostDrivenRanks(std::span<CudaDevice* const> gpus, const DeviceProgram& program, std::span<const RankBuffers> buffers,
                  const DeviceCall& call);
  Result<void> set_up();
  Result<void> make_event(const CudaDevice& gpu, DriverHandle& event);
  Result<void> give();
  [[nodiscard]] bool was_given(const CounterWait& wait) const;
  Result<void> give_step(std::uint32_t block);
  Result<void> move_piece(Work& work, const Step& step, const Piece& piece, Rank rank);
  Result<void> reduce(Work& work, const Piece& piece, Rank rank, const std::byte* source);
  Result<void> divide(Work& work, Rank rank);
  Result<void> launch(Work& work, KernelKind kind, std::int64_t bytes, void* parameters);
  [[nodiscard]] std::byte* address(Rank rank, const Location& location) const;
  Result<void> fail_for_good(Error error);

  std::vector<CudaDevice*> of_rank_;
  std::vector<CudaDevice*> gpus_;
  DeviceProgram program_;
  std::vector<RankBuffers> buffers_;
  DeviceCall call_;
  std::vector<Work> works_;                          ///< By block.
  std::vector<DriverHandle> step_events_;            ///< By step; null where nobody waits for it.
  std::vector<std::vector<std::uint32_t>> signals_;  ///< By counter: steps.
  std::vector<std::uint32_t> given_;                 ///< By counter: signals of this call.
  std::vector<DriverHandle> own_streams_;            ///< By GPU, for `run`.
  std::vector<DriverHandle> begins_;                 ///< Events, by GPU.
  std::optional<Error> failure_;
};

}  // namespace espalier::engine::cuda
