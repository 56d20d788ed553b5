#pragma once

// Tested by: tests/unit/engine/device/device_test.cpp

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "engine/device/device_queue.h"
#include "engine/device/rank_kernel.h"
#include "engine/memory/memory.h"

namespace espalier::engine {

/// Memory as a dma-buf of the kernel, by which network cards reach it.
struct DmaBuf {
  FileDescriptor descriptor;
  std::int64_t offset = 0;  ///< Of the memory's first byte in it.
};

/// The clock by which a device's kernels say when they did something, against CLOCK_MONOTONIC.
struct DeviceClock {
  std::int64_t ahead_ns = 0;  ///< The device's less the host's.
  std::int64_t error_ns = 0;  ///< The most that this is off.
};

/// What works on a rank's memories. Its queues end before it does. Used by any thread.
class Device {
 public:
  virtual ~Device() = default;

  /// "host", ...
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// A queue whose work is independent of that of other queues. Errors: unavailable.
  virtual Result<std::unique_ptr<DeviceQueue>> make_queue() = 0;

  /// A queue on a stream of the caller's (a cudaStream_t), who goes on to give it work of his own; the stream outlives
  /// the queue. Errors: unsupported by devices without streams.
  virtual Result<std::unique_ptr<DeviceQueue>> adopt_stream(void* stream);
  /// While one of these lives, its thread may allocate on the device although a stream is capturing.
  class BesideCapture {
   public:
    virtual ~BesideCapture() = default;
  };
  virtual std::unique_ptr<BesideCapture> work_beside_capture() { return nullptr; }

  /// Zeroed memory of whole pages. Errors: unavailable when there is not enough; unsupported for a space that it lacks.
  virtual Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) = 0;
  /// Requires: what `allocate` gave, and no work on it.
  virtual void release(std::byte* data, std::int64_t bytes) = 0;

  /// Opens memory of the space `device` to network cards. Errors: unsupported where it gives no dma-buf; a card may
  /// reach it by its address all the same.
  virtual Result<DmaBuf> export_memory(const std::byte* data, std::int64_t bytes);

  // Between ranks of one machine.
  /// Whether devices of other ranks may open its memory, for all that is known of this one alone.
  [[nodiscard]] virtual bool shares_memory() const { return false; }
  /// The most bytes of what `share_memory` gives.
  static constexpr std::size_t max_shared_bytes = 1024;
  /// What another rank's device opens memory of the space `device` by. Errors: unsupported where it cannot be shared.
  virtual Result<std::string> share_memory(const std::byte* data, std::int64_t bytes);
  /// Memory of another rank's device, which this one's queues then reach, until `close_memory`; what was opened twice
  /// is closed twice. Errors: unsupported where this device does not reach it; unavailable when it is not there any
  /// more.
  virtual Result<std::byte*> open_memory(std::string_view shared);
  virtual void close_memory(std::byte* /*data*/) {}

  /// Where its kernels carry out whole calls in memory that devices share; none where they cannot.
  [[nodiscard]] virtual std::optional<KernelSite> kernel_site() { return std::nullopt; }
  /// Errors: unsupported for schedules that they do not carry out; the same on all ranks.
  virtual Result<std::unique_ptr<RankKernel>> make_rank_kernel(const RankKernel::Shape& shape);
  /// Compares the two clocks now. Requires: none of its kernels waits for one that is given later. Errors: those of the
  /// device.
  virtual Result<DeviceClock> compare_clock() { return DeviceClock{}; }

  /// Lets queues reach whole pages of host memory that the device did not allocate, until `unpin`. Errors: unavailable.
  virtual Result<void> pin(std::byte* /*data*/, std::int64_t /*bytes*/) { return {}; }
  virtual void unpin(std::byte* /*data*/) {}
  /// Whether queues reach host memory that was neither allocated here nor pinned.
  [[nodiscard]] virtual bool reaches_unpinned() const { return true; }
};

/// The processor itself: work is done when it has been given.
class HostDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "host"; }
  Result<std::unique_ptr<DeviceQueue>> make_queue() override;
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) override;
  void release(std::byte* data, std::int64_t bytes) override;
};

}  // namespace espalier::engine
