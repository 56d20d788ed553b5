#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <cstddef>
#include <span>
#include <string_view>

#include "base/id.h"

namespace espalier {

/// How much a link is used, in the steps that drawings tell apart: idle, up to 25 %, 50 %, 75 %, 95 %, and over.
inline constexpr std::size_t load_steps = 6;
/// The step of a load, the part of the time that a link is busy.
std::size_t load_step(double load);
/// "idle", "up to 25 %", ...
std::string_view load_step_name(std::size_t step);

/// What a drawing shows beside the network.
struct DrawnUse {
  std::span<const double> loads;  ///< By link, the part of the time that it is busy; empty: colours are of classes.
  std::span<const NodeId> side;   ///< Nodes of one side of a cut, which are outlined.
};

}  // namespace espalier
