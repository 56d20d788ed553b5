#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <string>

#include "topology/draw/drawn_use.h"
#include "topology/topology.h"

namespace espalier {

/// The network as one SVG that needs nothing else: a line for all links of a class between two nodes, its width by
/// their rate and its colour by the class, dashed where they lead one way only; names and rates as tooltips and for
/// screen readers. With loads a line has the colour of its busiest link's step, class "load0" to "load5", and its
/// links as `data-links`, so that a page may show others: their numbers, "FIRST+STEPxCOUNT" where they are regular. A
/// line of links that are slower than others of their class is red and dotted. Light or dark as the viewer is. It may
/// stand in a page. At most max_drawing_width wide: of large networks like parts are drawn once (layout.h).
/// Requires: a load for every link, or none.
std::string topology_svg(const Topology& topology, const DrawnUse& use = {});

}  // namespace espalier
