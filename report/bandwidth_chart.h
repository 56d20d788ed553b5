#pragma once

#include <string>

#include "report/plan_report.h"

namespace espalier::report {

/// Bus bandwidth against message size, and below it the part of the bound that this is, as an SVG with a list of what
/// its lines are: a line per curve, measured ones dashed, the bound, the crossovers. Lines differ in colour and in
/// marker; every point has its values as a tooltip. For a page with its style. Empty where no curve has a point.
std::string bandwidth_chart(const PlanReport& report);

/// The same as an SVG that needs nothing else.
std::string bandwidth_picture(const PlanReport& report);

/// Bus bandwidth of a time, in bytes per second; 0 for no time.
double bus_bandwidth(const Collective& collective, Bytes size, double seconds);

}  // namespace espalier::report
