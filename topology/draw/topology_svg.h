#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier {

/// The most nodes that a drawing shows.
inline constexpr std::size_t most_drawn_nodes = 2000;

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

/// The network as one SVG that needs nothing else: a line for all links of a class between two nodes, its width by
/// their rate and its colour by the class, dashed where they lead one way only; names and rates as tooltips and for
/// screen readers. With loads a line has the colour of its busiest link's step, class "load0" to "load5", and its
/// links' numbers as `data-links`, so that a page may show others. Light or dark as the viewer is. It may stand in a
/// page. Errors: too_large past `most_drawn_nodes`. Requires: a load for every link, or none.
Result<std::string> topology_svg(const Topology& topology, const DrawnUse& use = {});

}  // namespace espalier
