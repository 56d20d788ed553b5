#pragma once

#include <string>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier {

/// The most nodes that a drawing shows.
inline constexpr std::size_t most_drawn_nodes = 2000;

/// The network as one SVG that needs nothing else: a line for all links of a class between two nodes, its width by
/// their rate and its colour by the class, dashed where they lead one way only; names and rates as tooltips and for
/// screen readers. Light or dark as the viewer is. Errors: too_large past `most_drawn_nodes`.
Result<std::string> topology_svg(const Topology& topology);

}  // namespace espalier
