#pragma once

// Tested by: tests/unit/engine/verbs/route_rails_test.cpp

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::engine {

/// The rails (RDMA devices of a rank, numbered from 0) by which a transfer leaves its source and enters its
/// destination.
struct RailPair {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  friend bool operator==(const RailPair&, const RailPair&) = default;
};

/// The rails of a route; nothing when it does not say. A rank with fewer rails takes the number modulo how many it has.
using RailChoice = std::function<std::optional<RailPair>(const Schedule&, RouteId)>;

/// The rails of routes on this topology: of the first and the last NIC on a route. A NIC's rail is its place among the
/// NICs of its host, in node order. On a route without NICs, rails are the places of its first link among those that
/// leave the source, and of its last one among those that enter the destination. Nothing for routes without links, and
/// for schedules on a topology of another name.
RailChoice rails_by_routes(const Topology& topology);

/// The NICs of each rank's host in node order, by rank: what is called a rail above.
std::vector<std::vector<std::string>> nics_by_rank(const Topology& topology);

}  // namespace espalier::engine
