#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/cuda/chunk_times.h"
#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/kernel_part.h"
#include "engine/cuda/device_program.h"
#include "engine/device/rank_kernel.h"

namespace espalier::engine::cuda {

/// One rank's part of a device program, on the GPU of its process: the interpreter's kernel with the blocks of that
/// rank alone, whose counters and mailboxes other processes reach (docs/gpu.md, "Ranks in processes").
class CudaRankKernel final : public RankKernel {
 public:
  /// The device outlives it. Errors: those of compile_for_device and verify.
  static Result<std::unique_ptr<RankKernel>> make(CudaDevice& gpu, const Shape& shape);
  ~CudaRankKernel() override;

  [[nodiscard]] std::int64_t shared_bytes() const override;
  [[nodiscard]] const std::vector<bool>& reached() const override { return reached_; }
  Result<void> attach(std::span<std::byte* const> shared) override;
  /// Requires: a queue of the GPU, memories aligned to elements.
  Result<void> launch(DeviceQueue& queue, ElementType type, ReduceOperation operation,
                      std::span<const Memories> memories, bool records) override;
  Result<void> check() override;
  void record(Recorder& recorder) const override;

 private:
  CudaRankKernel(CudaDevice& gpu, DeviceProgram program, const Shape& shape);
  [[nodiscard]] std::int64_t counter_bytes() const;
  /// Errors: too_large where the rank's blocks do not fit the GPU at a time.
  Result<void> choose_kernel(ElementType type, ReduceOperation operation);
  /// Room for the times of steps, once.
  Result<void> make_stamps();

  DeviceProgram program_;
  Rank self_;
  std::chrono::milliseconds deadline_;
  KernelPart part_;
  std::vector<bool> reached_;              ///< By rank.
  std::vector<std::uint64_t*> mailboxes_;  ///< By rank.
  KernelMemory* memories_ = nullptr;       ///< Pinned: by rank.
  KernelReport* reports_ = nullptr;        ///< Pinned: by block of the program.
  KernelStamp* stamps_ = nullptr;          ///< Pinned: by step of the program. Null until a call is recorded.
  std::vector<BroughtChunk> brought_;      ///< By this rank; empty until then.
  std::optional<std::pair<ElementType, ReduceOperation>> chosen_;
  DriverHandle kernel_ = nullptr;
};

}  // namespace espalier::engine::cuda
