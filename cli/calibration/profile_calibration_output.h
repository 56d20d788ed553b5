#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>

#include "cli/calibration/profile_calibration.h"
#include "cli/output/table.h"
#include "compare/fit/fit_values.h"
#include "profile/profile.h"

namespace espalier::cli {

/// A calibrated profile with what it was made from.
struct ProfileCalibrationReport {
  const profile::Profile* given = nullptr;
  const profile::Profile* fitted = nullptr;
  const ProfileCalibration* tables = nullptr;
  const compare::ValuesFit* fit = nullptr;
  std::vector<compare::HoldOutPart> by_table;    ///< The first parts of the fit's hold-out; may be empty.
  std::vector<compare::HoldOutPart> by_machine;  ///< The parts behind them; may be empty.
};

/// A row per value that was fitted.
Table profile_values_table(const ProfileCalibrationReport& report);
std::string profile_calibration_text(const ProfileCalibrationReport& report);
/// Schema espalier/profile-calibration/1.
nlohmann::ordered_json profile_calibration_json(const ProfileCalibrationReport& report);
/// The fitted profile as YAML, with what it was fitted to and how far its values are known in comments.
std::string calibrated_profile_yaml(const ProfileCalibrationReport& report);

}  // namespace espalier::cli
