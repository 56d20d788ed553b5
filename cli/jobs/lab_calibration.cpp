#include "cli/jobs/lab_calibration.h"

#include <algorithm>
#include <cmath>

namespace espalier::cli {
namespace {

double residual_of(std::span<const CalibrationPoint> points, double stretch, double latency) {
  double sum = 0;
  for (const CalibrationPoint& point : points) {
    const double error = (stretch * point.simulated + latency * point.per_latency) / point.measured - 1;
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(points.size()));
}

/// The best stretch alone.
double stretch_alone(std::span<const CalibrationPoint> points) {
  double above = 0;
  double below = 0;
  for (const CalibrationPoint& point : points) {
    const double x = point.simulated / point.measured;
    above += x;
    below += x * x;
  }
  return above / below;
}

}  // namespace

LabCalibration fit_calibration(std::span<const CalibrationPoint> points) {
  // Unknowns (s, l) minimise the sum of (s x + l y - 1)^2, where x and y are the two terms over the measured time.
  double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
  for (const CalibrationPoint& point : points) {
    const double x = point.simulated / point.measured;
    const double y = point.per_latency / point.measured;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    x1 += x;
    y1 += y;
  }
  double stretch = stretch_alone(points);
  double latency = 0;
  const double determinant = xx * yy - xy * xy;
  // With one size, or sizes that all say the same, the two cannot be told apart: then there is no latency.
  constexpr double told_apart = 1e-6;
  if (points.size() > 1 && determinant > told_apart * xx * yy) {
    const double fitted_latency = (xx * y1 - xy * x1) / determinant;
    const double fitted_stretch = (yy * x1 - xy * y1) / determinant;
    if (fitted_latency > 0 && fitted_stretch > 0) {
      stretch = fitted_stretch;
      latency = fitted_latency;
    }
  }
  constexpr double ps_per_second = 1e12;
  LabCalibration calibration;
  calibration.efficiency = 1 / stretch;
  calibration.latency = {static_cast<std::int64_t>(latency * ps_per_second)};
  calibration.residual = residual_of(points, stretch, latency);
  return calibration;
}

Result<Topology> calibrated(const Topology& scaled, const LabCalibration& calibration) {
  std::vector<Link> links(scaled.links().begin(), scaled.links().end());
  for (Link& link : links) {
    const double rate = static_cast<double>(link.bandwidth().bytes_per_second) * calibration.efficiency;
    link.nominal = {std::max<std::int64_t>(1, static_cast<std::int64_t>(rate))};
    link.efficiency_ppm = 1'000'000;
    link.latency = link.latency + calibration.latency;
  }
  std::vector<Node> nodes(scaled.nodes().begin(), scaled.nodes().end());
  return Topology::make(scaled.name(), std::move(nodes), std::move(links));
}

}  // namespace espalier::cli
