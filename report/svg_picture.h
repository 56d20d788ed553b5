#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/plan_report.h"

namespace espalier::report {

/// The beginning of an SVG that needs nothing else: its size, what it is for screen readers, its style, white paper.
std::string begin_picture(double width, double height, std::string_view title);

/// A picture of a report by itself, for papers and slides.
struct Picture {
  std::string name;  ///< "machine", "bandwidth", "timeline", "measured".
  std::string svg;
};

/// Every picture that a report has. Errors: too_large where the machine has too many nodes to draw.
Result<std::vector<Picture>> pictures_of(const PlanReport& report);

}  // namespace espalier::report
