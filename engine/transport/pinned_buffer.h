#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "engine/device/device.h"

namespace espalier::engine {

/// Memory that the processor and a device both reach: what a transport without access to device memory sends from and
/// receives into.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() { clear(); }

  /// Makes it at least so large; what was in it is gone then. Requires: no work on it; the device outlives this.
  /// Errors: those of Device::allocate.
  Result<void> reserve(Device& device, std::int64_t bytes) {
    constexpr std::int64_t page = 4096;
    if (bytes <= bytes_) return {};
    clear();
    const std::int64_t room = (bytes + page - 1) / page * page;
    const auto memory = device.allocate(room, MemorySpace::pinned);
    if (!memory) return tl::unexpected(memory.error());
    device_ = &device;
    data_ = *memory;
    bytes_ = room;
    return {};
  }
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  void clear() {
    if (data_ != nullptr) device_->release(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace espalier::engine
