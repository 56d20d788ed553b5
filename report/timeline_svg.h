#pragma once

// Tested by: tests/unit/report/results_page_test.cpp

#include <string>

#include "report/timeline_data.h"

namespace espalier::report {

/// A timeline as an SVG of its own: ranks, then the busiest links, at most `max_drawn_lanes` of each; what each does
/// over time, and the critical path outlined.
std::string timeline_svg(const DrawnTimeline& drawn);

/// Further ranks and links are left out, and the picture says so.
inline constexpr std::size_t max_drawn_lanes = 24;

}  // namespace espalier::report
