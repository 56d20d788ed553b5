#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/lab_calibration.h"
#include "cli/jobs/lab_job.h"
#include "cli/output/table.h"
#include "lab/scale.h"
#include "planners/chooser.h"

namespace espalier::cli {

/// One algorithm at one size, simulated and measured.
struct LabResult {
  Bytes size;
  std::string algorithm;
  Pacing pacing;
  double simulated = 0;  ///< Seconds.
  LabMeasurement measured;

  /// How far the simulation was off, as a part of the measured time: negative where it was too fast.
  [[nodiscard]] double error() const { return (simulated - measured.time) / measured.time; }
};

/// Everything that a lab gave, ready to be shown.
struct LabReport {
  const Topology* original = nullptr;
  const lab::ScaledTopology* scaled = nullptr;
  Collective collective;
  std::string type;
  std::int64_t element_size = 4;
  std::vector<std::string> algorithms;
  std::vector<Bytes> sizes;
  std::vector<LabResult> results;  ///< Size by size, algorithm by algorithm.
  std::vector<planners::Refusal> refused;
  std::optional<LabCalibration> calibration;

  [[nodiscard]] std::int64_t wrong() const;
};

/// The algorithms at one size, fastest first.
struct LabOrder {
  Bytes size;
  std::vector<std::string> simulated;
  std::vector<std::string> measured;
  [[nodiscard]] bool agrees() const { return simulated == measured; }
};
std::vector<LabOrder> orders_of(const LabReport& report);

/// The median of the absolute errors of an algorithm; of all where the name is empty.
double median_error(const LabReport& report, const std::string& algorithm = {});

Table lab_table(const LabReport& report);
std::string lab_text(const LabReport& report);
nlohmann::ordered_json lab_json(const LabReport& report);

}  // namespace espalier::cli
