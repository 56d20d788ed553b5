#pragma once

// Tested by: tests/unit/engine/transport/transport_test.cpp

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/memory/memory.h"
#include "engine/program/placement.h"

namespace espalier::engine {

/// Where a rank's memories are in one call, as seen from this process. Null where they are not, or not mapped here.
struct MappedBuffers {
  std::array<std::byte*, 3> base = {};  ///< By Place. The send buffer is never written.

  [[nodiscard]] std::byte* at(Location location) const {
    return base[static_cast<std::size_t>(location.place)] + location.offset;
  }
};

/// The same of this rank, and what is known of its memories.
struct Buffers : MappedBuffers {
  std::array<MemoryPlace, 3> registered{};  ///< By Place; none where the bytes are not registered.

  /// Whether the processor may touch what lies there. Requires: a memory of this rank.
  [[nodiscard]] bool is_on_host(Location location) const {
    return registered[static_cast<std::size_t>(location.place)].is_on_host();
  }
};

}  // namespace espalier::engine
