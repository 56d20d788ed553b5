#pragma once

#include <cstdint>
#include <vector>

#include "base/rational.h"

namespace espalier::planners {

/// One of several ways that together use lanes evenly.
struct LaneLayer {
  Rational part;                     ///< Of the data.
  std::vector<std::int64_t> counts;  ///< By lane: how many of the things to place are in it.
};

/// Few layers whose parts add up to 1, each placing all `things` in lanes, so that all lanes get equally much. Where
/// the lanes divide the things one is enough. Each layer fills lanes to the brim, as many as it can, with as many
/// things as an even share rounded up, and leaves them empty for those that follow: of 71 things in 18 lanes, 17 lanes
/// get 4 and one gets 3, which takes 71/72 of the data; the rest goes all over the last lane. Requires: lanes > 0.
std::vector<LaneLayer> even_layers(std::int64_t things, std::size_t lanes);

}  // namespace espalier::planners
