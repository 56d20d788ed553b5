#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "engine/device/device_queue.h"
#include "engine/memory/memory.h"

namespace espalier::engine {

/// Memory as a dma-buf of the kernel, by which network cards reach it.
struct DmaBuf {
  FileDescriptor descriptor;
  std::int64_t offset = 0;  ///< Of the memory's first byte in it.
};

/// What works on a rank's memories. Its queues end before it does. Used by any thread.
class Device {
 public:
  virtual ~Device() = default;

  /// "host", ...
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// A queue whose work is independent of that of other queues. Errors: unavailable.
  virtual Result<std::unique_ptr<DeviceQueue>> make_queue() = 0;

  /// Zeroed memory of whole pages. Errors: unavailable when there is not enough; unsupported for a space that it lacks.
  virtual Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) = 0;
  /// Requires: what `allocate` gave, and no work on it.
  virtual void release(std::byte* data, std::int64_t bytes) = 0;

  /// Opens memory of the space `device` to network cards. Errors: unsupported where it gives no dma-buf; a card may
  /// reach it by its address all the same.
  virtual Result<DmaBuf> export_memory(const std::byte* data, std::int64_t bytes);
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
