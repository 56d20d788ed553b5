#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/plan_report.h"

namespace espalier::report {

/// The beginning of an SVG that needs nothing else: its size, what it is for screen readers, its style, white paper.
std::string begin_picture(double width, double height, std::string_view title);

/// The width that texts of this size and less need beside a chart, room between included: at least `least` pixels.
double names_width(const std::vector<std::string>& names, double least);

/// A name as charts show it: of a long one both ends, as they tell it from others.
std::string shown_name(const std::string& name);

/// A picture of a report by itself, for papers and slides.
struct Picture {
  std::string name;  ///< "machine", "traffic", "bandwidth", "timeline", "measured".
  std::string svg;
};

/// Every picture that a report has.
std::vector<Picture> pictures_of(const PlanReport& report);

}  // namespace espalier::report
