#pragma once

// Tested by: tests/unit/compare/compare_timelines_test.cpp

#include <cstddef>
#include <iosfwd>
#include <string>

#include "base/result.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

struct OverlayOptions {
  std::string label_a = "A";   ///< What the upper row of each lane is.
  std::string label_b = "B";   ///< What the lower row is.
  std::size_t max_lanes = 48;  ///< Further lanes are left out, and the picture says so.
};

/// Draws two timelines over each other as one SVG: for each rank, then each link, a lane whose upper row is `a` and
/// whose lower row is `b`, both from their own first span and to one scale; colours are phases, and the critical path
/// of each is outlined. Spans that would be nearer than a third of a pixel are drawn as one. Requires: spans on named
/// lanes. Errors: unavailable when the stream does not take it all.
Result<void> write_overlay_svg(std::ostream& out, const Timeline& a, const Timeline& b,
                               const OverlayOptions& options = {});

}  // namespace espalier::compare
