#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier::report {

/// An SVG as a PNG, by librsvg and cairo, which are loaded when this is first called. Each unit of the SVG is two
/// pixels; one where the PNG would otherwise be larger than 2 MB. Requires: an SVG that states its width and height.
/// Errors: unavailable without librsvg; invalid_input for what it does not draw; too_large past 2^26 pixels.
Result<std::string> png_of_svg(std::string_view svg);

}  // namespace espalier::report
