#pragma once

// Tested by: tests/unit/cli/jobs/lab_calibration_test.cpp

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "topology/topology.h"

namespace espalier::cli {

/// One size and algorithm of the runs that a lab is calibrated from: times in seconds.
struct CalibrationPoint {
  double measured = 0;
  double simulated = 0;    ///< Without any latency.
  double per_latency = 0;  ///< How many seconds it takes longer for every second of latency per link.
};

/// What the links of a lab really do, as far as two numbers for all of them can say it.
struct LabCalibration {
  double efficiency = 1;  ///< The part of the shaped rate that is reached.
  Picoseconds latency;    ///< Of every link.
  std::vector<Bytes> sizes;
  double residual = 0;  ///< The root of the mean squared relative error that is left on the points.
};

/// Least squares of relative errors over measured = simulated / efficiency + per_latency x latency, with a latency that
/// is not negative. Requires: at least one point, measured times above zero.
/// Source: normal equations of weighted linear least squares with two unknowns.
LabCalibration fit_calibration(std::span<const CalibrationPoint> points);

/// The scaled topology with the calibration in it.
Result<Topology> calibrated(const Topology& scaled, const LabCalibration& calibration);

}  // namespace espalier::cli
