#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <cstdint>
#include <string>

namespace espalier::engine {

/// Near and far address of a stream that is to take a certain path through the network (a lab, a multi-homed host).
struct RouteAddress {
  std::uint32_t route = 0;  ///< The schedule's RouteId.
  std::string bind;
  std::string connect;
};

}  // namespace espalier::engine
