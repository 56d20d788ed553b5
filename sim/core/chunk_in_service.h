#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>

namespace espalier::sim {

/// A chunk as what is on its way sees it.
struct ChunkInService {
  std::int64_t payload = 0;  ///< Bytes.
  std::int64_t wire = 0;     ///< Bytes, with what the protocol adds to them.
  std::uint32_t order = 0;   ///< With `chunk`: what its jitter depends on.
  std::uint32_t chunk = 0;
};

}  // namespace espalier::sim
