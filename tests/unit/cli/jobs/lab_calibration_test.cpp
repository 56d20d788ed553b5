#include "cli/jobs/lab_calibration.h"

#include <gtest/gtest.h>

#include "topology/topology_builder.h"

namespace espalier::cli {
namespace {

TEST(LabCalibration, FindsTheTwoNumbersThatMadeThePoints) {
  // measured = 1.25 simulated + 0.002 per_latency: an efficiency of 0.8 and 2 ms.
  std::vector<CalibrationPoint> points;
  for (const auto& [simulated, per_latency] : {std::pair{0.1, 3.0}, {0.5, 3.0}, {1.0, 5.0}}) {
    points.push_back({1.25 * simulated + 0.002 * per_latency, simulated, per_latency});
  }
  const LabCalibration fit = fit_calibration(points);
  EXPECT_NEAR(fit.efficiency, 0.8, 1e-9);
  EXPECT_NEAR(fit.latency.seconds(), 0.002, 1e-9);
  EXPECT_NEAR(fit.residual, 0, 1e-9);
}

TEST(LabCalibration, HasNoLatencyBelowZero) {
  // Exact with an efficiency of 1 and a latency of -1 ms; without one, a stretch of 1 - 0.005 remains at best.
  const std::vector<CalibrationPoint> points = {{0.099, 0.1, 1}, {0.999, 1.0, 1}};
  const LabCalibration fit = fit_calibration(points);
  EXPECT_EQ(fit.latency.count, 0);
  EXPECT_GT(fit.efficiency, 1.0);
}

TEST(LabCalibration, OnePointGivesAnEfficiencyAlone) {
  const std::vector<CalibrationPoint> points = {{0.2, 0.1, 5}};
  const LabCalibration fit = fit_calibration(points);
  EXPECT_NEAR(fit.efficiency, 0.5, 1e-12);
  EXPECT_EQ(fit.latency.count, 0);
}

TEST(LabCalibration, IsPutIntoEveryLink) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  builder.cable(a, b, {{1'000'000}, {5'000'000}, ""});
  const Topology topology = std::move(builder).build("t").value();
  const auto changed = calibrated(topology, {0.5, {7'000'000}, {}, 0});
  ASSERT_TRUE(changed);
  for (const Link& link : changed->links()) {
    EXPECT_EQ(link.bandwidth().bytes_per_second, 500'000);
    EXPECT_EQ(link.latency.count, 12'000'000);
  }
}

}  // namespace
}  // namespace espalier::cli
