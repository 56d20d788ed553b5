#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/cuda/chunk_times.h"
#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/device/kernel_part.h"
#include "engine/cuda/device_program.h"
#include "engine/cuda/host_streams.h"
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
  Result<void> capture(DeviceQueue& capturing, DeviceQueue& stops_with, ElementType type, ReduceOperation operation,
                       std::span<const Memories> memories) override;
  [[nodiscard]] Result<void> check_captured() const override;
  [[nodiscard]] std::uint32_t permitted(std::uint32_t stream) const override;
  void note_done(std::uint32_t stream, std::uint32_t ops) override;
  Result<void> check() override;
  void record(Recorder& recorder) const override;

 private:
  CudaRankKernel(CudaDevice& gpu, DeviceProgram program, const Shape& shape);
  [[nodiscard]] std::int64_t counter_bytes() const;
  /// Errors: too_large where the rank's blocks do not fit the GPU at a time.
  Result<void> choose_kernel(ElementType type, ReduceOperation operation);
  /// Where the kernel finds the ranks' memories. Errors: invalid_input for what is not aligned to elements.
  Result<void> point_at(std::span<const Memories> memories);
  /// Room for the times of steps, once.
  Result<void> make_stamps();
  /// The program with the blocks for the host's streams, on the GPU.
  Result<void> upload(std::span<std::byte* const> shared);
  Result<void> make_words();
  /// What stopped the blocks for the host's streams; nothing where they ended.
  [[nodiscard]] std::optional<Error> find_late_host_op() const;

  DeviceProgram program_;
  Rank self_;
  std::chrono::milliseconds deadline_;
  KernelPart part_;
  std::vector<bool> in_kernel_;         ///< By rank, as Shape has it.
  std::vector<HostOp> host_ops_;        ///< Of streams to and from other machines.
  std::vector<HostStreamWords> words_;  ///< Pinned: by stream of the rank's program; null for the kernel's own.
  std::uint32_t calls_before_ = 0;      ///< The one that was launched last.
  bool has_launched_ = false;
  std::size_t step_count_ = 0;             ///< As uploaded.
  std::size_t block_count_ = 0;            ///< Of all ranks, as uploaded.
  std::vector<bool> reached_;              ///< By rank.
  std::vector<std::uint64_t*> mailboxes_;  ///< By rank.
  KernelMemory* memories_ = nullptr;       ///< Pinned: by rank.
  KernelReport* reports_ = nullptr;        ///< Pinned: by number of the block.
  KernelStamp* stamps_ = nullptr;          ///< Pinned: by step. Null until a call is recorded.
  std::vector<BroughtChunk> brought_;      ///< By this rank; empty until then.
  std::optional<std::pair<ElementType, ReduceOperation>> chosen_;
  DriverHandle kernel_ = nullptr;
};

}  // namespace espalier::engine::cuda
