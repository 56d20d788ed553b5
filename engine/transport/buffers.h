#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/memory/memory.h"
#include "engine/program/placement.h"

namespace espalier::engine {

/// Where a rank's memories are in one call, as seen from this process. Null where they are not, or not mapped here.
struct Buffers {
  std::array<std::byte*, 3> base = {};      ///< By Place. The send buffer is never written.
  std::array<MemoryPlace, 3> registered{};  ///< Likewise; none where the bytes are not registered, or another rank's.

  [[nodiscard]] std::byte* at(Location location) const {
    return base[static_cast<std::size_t>(location.place)] + location.offset;
  }
};

}  // namespace espalier::engine
