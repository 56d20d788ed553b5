#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <cstddef>
#include <utility>
#include <vector>

namespace espalier {

/// The height of an ellipse that nodes stand round, of its width.
inline constexpr double ellipse_height = 0.9;

/// Where so many nodes stand round an ellipse from its top, from its middle: each `apart` times a cell beside or a line
/// below the one before. None where it is too small for them.
std::vector<std::pair<double, double>> on_ellipse(std::size_t count, double cell, double radius, double apart);

}  // namespace espalier
