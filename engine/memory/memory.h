#pragma once

// Tested by: tests/unit/engine/device/device_test.cpp

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/memory/private_at_fork.h"

namespace espalier::engine {

class Transport;

/// Where a memory is, and so who may touch it: `host` any thread; `pinned` any thread, and devices and network cards
/// without a page fault; `device` only a Device.
enum class MemorySpace : std::uint8_t { host, pinned, device };

/// What a transport keeps about a memory so that its peers reach it: an exported file, a key of a network card, a
/// handle of another process' device memory. Ends the registration when it goes.
class Registration {
 public:
  virtual ~Registration() = default;
};

/// Memory that a caller allocated or registered. Peers reach it until it is released.
struct Memory {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  MemorySpace space = MemorySpace::host;
  std::uint64_t generation = 0;   ///< Tells it from later memories at the same address.
  bool is_allocated = false;      ///< By the device; else a transport's registration or the caller owns the bytes.
  bool is_pinned = false;         ///< By the device, which did not allocate it.
  PrivateAtFork private_at_fork;  ///< Of what the engine gave to a caller.
  std::vector<std::pair<const Transport*, std::unique_ptr<Registration>>> registrations;

  /// What the transport keeps about it; null where its peers do not reach it.
  [[nodiscard]] const Registration* registration(const Transport* transport) const {
    for (const auto& [owner, kept] : registrations) {
      if (owner == transport) return kept.get();
    }
    return nullptr;
  }
};

/// A byte of a memory; `memory` is null where the bytes are the caller's own and not registered, hence on the host.
struct MemoryPlace {
  const Memory* memory = nullptr;
  std::int64_t offset = 0;

  [[nodiscard]] bool is_on_host() const { return memory == nullptr || memory->space != MemorySpace::device; }
};

}  // namespace espalier::engine
