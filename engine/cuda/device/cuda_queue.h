#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {

/// A stream of a GPU.
class CudaQueue final : public DeviceQueue {
 public:
  /// Requires: the device outlives the queue. Errors: those of the driver.
  static Result<std::unique_ptr<DeviceQueue>> make(CudaDevice& device);
  /// On a stream of the caller's. Null, the default stream, is one as well.
  static Result<std::unique_ptr<DeviceQueue>> adopt(CudaDevice& device, DriverHandle stream);
  ~CudaQueue() override;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override;
  /// At most 64 sources; more fail the queue as unsupported.
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override;
  void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) override;
  bool run_pattern(const PatternCall& call) override;
  /// A cooperative launch of the interpreter's kernel, whose blocks stop where they wait when `stops_with` is drained.
  void launch_together(DriverHandle kernel, std::uint32_t blocks, KernelCall call, const CudaQueue& stops_with);
  [[nodiscard]] bool is_capturing() const override;
  std::uint64_t mark_stream() override;
  std::uint64_t hold() override;
  void release(std::uint64_t ticket) override;
  /// Waits for all work, and for what was held as well. Kernels of `launch_together` end, and later ones at once.
  void drain(std::chrono::milliseconds longest) override;

 private:
  /// Work that is done when the event is.
  struct Pending {
    DriverHandle event = nullptr;
    std::uint64_t given = 0;
  };

  explicit CudaQueue(CudaDevice& device) : DeviceQueue(device), gpu_(device) {}
  Result<void> make_words();
  std::uint64_t look() override;
  /// Counts work that the driver took, or fails the queue.
  void note(DriverStatus status, std::string_view action);
  void launch(KernelKind kind, ElementType type, ReduceOperation operation, std::uint64_t bytes, void* parameters);
  /// Puts an event behind all work given. Requires: `mutex_` held.
  void record_event();
  void fail_once(Error error);

  CudaDevice& gpu_;
  DriverHandle stream_ = nullptr;
  bool owns_stream_ = false;
  bool is_adopted_ = false;
  /// Pinned; a held ticket waits until its word says so. The last one stops kernels.
  std::uint32_t* words_ = nullptr;
  std::uint64_t tickets_ = 0;
  std::mutex mutex_;
  std::deque<Pending> pending_;       ///< In order. Guarded by `mutex_`, as is what follows.
  std::vector<DriverHandle> unused_;  ///< Events.
  std::uint64_t covered_ = 0;         ///< Work that an event stands behind.
  std::uint64_t finished_ = 0;
  std::atomic<std::uint64_t> taken_ = 0;  ///< As `mark`, for any thread.
};

}  // namespace espalier::engine::cuda
