#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.h"
#include "engine/device/device.h"
#include "engine/memory/memory.h"

namespace espalier::engine {

/// The memories that a rank's callers allocated or registered. Thread-safe.
class MemoryRegistry {
 public:
  /// Requires: the transports and the device outlive this.
  MemoryRegistry(std::span<const std::unique_ptr<Transport>> transports, Device& device)
      : transports_(transports), device_(device) {}
  ~MemoryRegistry();
  MemoryRegistry(const MemoryRegistry&) = delete;
  MemoryRegistry& operator=(const MemoryRegistry&) = delete;

  /// Zeroed memory that the peers of as many transports as possible reach: made by the first transport that makes such
  /// memory, else by the device. Errors: unavailable when there is not enough; what a transport that makes memory says.
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space = MemorySpace::host);
  /// The same for a caller, whose children shall not share it. Errors: those of `allocate`.
  Result<std::byte*> allocate_for_caller(std::int64_t bytes, MemorySpace space);
  /// Registers memory of the caller. Errors: invalid_input when it is not whole pages, or some of it is registered
  /// already; what a transport says that cannot register it.
  Result<void> add(void* data, std::int64_t bytes, MemorySpace space = MemorySpace::host);
  /// Requires: what `allocate` or `add` registered begins there, and no call under way uses it.
  void release(const void* data);

  /// The memory that holds all these bytes.
  [[nodiscard]] MemoryPlace find(const void* data, std::int64_t bytes) const;
  /// Changes whenever the answer of `find` may have changed.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

 private:
  /// Registers with all transports that have not done so. Requires: the lock.
  Result<void> complete(Memory& memory);
  std::byte* keep(Memory memory);
  void give_back(Memory& memory);

  std::span<const std::unique_ptr<Transport>> transports_;
  Device& device_;
  mutable std::mutex mutex_;
  std::map<const std::byte*, Memory> memories_;  ///< By their first byte.
  std::atomic<std::uint64_t> generation_ = 1;
};

}  // namespace espalier::engine
