#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::bench {

/// Why no packing of one root at the bound is as low as asked; docs/packing.md has the arguments.
enum class HeightFloor : std::uint8_t {
  none,     ///< Nothing was found that speaks against it.
  count,    ///< So few trees do not reach all ranks.
  cut,      ///< Every tree crosses a full cut once, and too late for the ranks behind it.
  program,  ///< The linear program over hops is too small.
};

std::string_view to_string(HeightFloor floor);

/// Looks for a reason why at most `max_trees` trees of a root that lose no more than a thousandth of the time cannot
/// all be within `max_height`. Requires: every rank reaches every other.
HeightFloor find_height_floor(const Topology& topology, Direction direction, Rank root, std::uint32_t max_height,
                              std::size_t max_trees);

}  // namespace espalier::bench
