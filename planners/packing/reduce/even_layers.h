#pragma once

// Tested by: tests/unit/planners/packing/reduce/deal_planes_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"

namespace espalier::planners {

/// One of several layouts that together use planes evenly.
struct PlaneLayer {
  Rational part;                     ///< Of the data.
  std::vector<std::int64_t> counts;  ///< By plane: how many of the things to place are in it.
};

/// Few layers whose parts add up to 1, each placing all `things` in planes, so that all planes get equally much. Where
/// the planes divide the things one is enough. Each layer fills planes to the brim, as many as it can, with as many
/// things as an even share rounded up, and leaves them empty for those that follow: of 71 things in 18 planes, 17
/// planes get 4 and one gets 3, which takes 71/72 of the data; the rest goes all over the last plane. Requires: planes
/// > 0.
std::vector<PlaneLayer> even_layers(std::int64_t things, std::size_t planes);

}  // namespace espalier::planners
