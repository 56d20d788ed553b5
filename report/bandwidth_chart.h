#pragma once

#include <string>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// Rates over message sizes: what a chart of them shows.
struct BandwidthCurves {
  std::string title;                      ///< Of the picture.
  std::string measure = "bus bandwidth";  ///< What a rate is: size over time, times the factor.
  double factor = 1;
  double bound = 0;  ///< Bytes per second, of the same measure; 0 where none is known.
  std::vector<Curve> predicted, measured;
  std::vector<CrossoverAt> crossovers;

  /// Bytes per second; 0 for no time.
  [[nodiscard]] double rate(const CurvePoint& point) const {
    return point.seconds <= 0 ? 0 : static_cast<double>(point.size.count) / point.seconds * factor;
  }
};

/// The bus bandwidths of a report, with what was measured.
BandwidthCurves curves_of(const PlanReport& report);

/// The rates against message size, and below them the part of the bound that they are, as an SVG with a list of what
/// its lines are: a line per curve, measured ones dashed, the bound, the crossovers. Lines differ in colour and in
/// marker; every point has its values as a tooltip. With the numbers for the page's script, which puts plots in the
/// drawing's place. For a page with its style. Empty where no curve has a point.
std::string bandwidth_chart(const BandwidthCurves& curves);

/// The same as an SVG that needs nothing else.
std::string bandwidth_picture(const BandwidthCurves& curves);

/// Bus bandwidth of a time, in bytes per second; 0 for no time.
double bus_bandwidth(const Collective& collective, Bytes size, double seconds);

}  // namespace espalier::report
