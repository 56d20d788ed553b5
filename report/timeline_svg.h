#pragma once

#include <string>

#include "report/plan_report.h"

namespace espalier::report {

/// The timeline of a run as an SVG of its own: ranks, then the busiest links, at most `most_drawn_lanes` of each; what
/// each does over time, and the critical path outlined. Empty without a timeline.
std::string timeline_svg(const CloseRun& run, const Topology& topology);

/// Further ranks and links are left out, and the picture says so.
inline constexpr std::size_t most_drawn_lanes = 24;

}  // namespace espalier::report
