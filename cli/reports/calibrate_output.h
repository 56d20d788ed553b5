#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/jobs/calibration_runs.h"
#include "cli/output/table.h"
#include "compare/fit/calibrate.h"

namespace espalier::cli {

/// A calibration with what it was made from.
struct CalibrationReport {
  const Topology* topology = nullptr;  ///< As given.
  std::vector<std::string> files;
  const CalibrationRuns* runs = nullptr;
  const compare::Calibration* calibration = nullptr;
};

/// A row per parameter.
Table parameters_table(const compare::Calibration& calibration);
std::string calibration_text(const CalibrationReport& report);
nlohmann::ordered_json calibration_json(const CalibrationReport& report);

/// The calibrated topology as YAML, with where its numbers come from in comments.
std::string calibrated_yaml(const CalibrationReport& report);

}  // namespace espalier::cli
