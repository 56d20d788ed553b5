#pragma once

// Tested by: tests/unit/report/report_page_test.cpp

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/plan_report.h"

namespace espalier::report {

/// Rates over message sizes: what a chart of them shows.
struct BandwidthCurves {
  std::string title;                      ///< Of the picture.
  std::string measure = "bus bandwidth";  ///< What a rate is: size over time, times the factor.
  double factor = 1;
  std::optional<Collective> collective;    ///< What the bounds are of; its parts are whole elements.
  std::int64_t element_size = 4;           ///< Bytes per element.
  std::vector<Curve> predicted, measured;  ///< Their bounds are of the same measure.
  std::vector<CrossoverAt> crossovers;

  /// Bytes per second; 0 for no time.
  [[nodiscard]] double rate(const CurvePoint& point) const {
    return point.seconds <= 0 ? 0 : static_cast<double>(point.size.count) / point.seconds * factor;
  }
  /// Which part of its own bound a point of a curve is; 0 where none is known.
  [[nodiscard]] double part_of_bound(const Curve& curve, const CurvePoint& point) const;
};

/// A bound of some curves of a chart.
struct BoundLine {
  double rate = 0;   ///< Bytes per second.
  std::string text;  ///< "bound 137.95 GB/s"; "bound of dgx1v ..." where there are several.
};

/// The bounds of all curves, each once, in their order.
std::vector<BoundLine> bound_lines(const BandwidthCurves& curves);

/// The bus bandwidths of a report, with what was measured.
BandwidthCurves curves_of(const PlanReport& report);

/// The rates against message size, and below them the part of the bound that they are, as an SVG with a list of what
/// its lines are: a line per curve, measured ones dashed, the bounds, the crossovers. Lines differ in colour and in
/// marker; every point has its values as a tooltip. With the numbers for the page's script, which puts plots in the
/// drawing's place. For a page with its style. Empty where no curve has a point.
std::string bandwidth_chart(const BandwidthCurves& curves);

/// The same as an SVG that needs nothing else.
std::string bandwidth_picture(const BandwidthCurves& curves);

/// Bus bandwidth of a time, in bytes per second; 0 for no time.
double bus_bandwidth(const Collective& collective, Bytes size, double seconds);

}  // namespace espalier::report
