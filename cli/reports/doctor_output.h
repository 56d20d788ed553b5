#pragma once

// Tested by: tests/unit/engine/doctor/doctor_test.cpp

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "engine/doctor/checkup.h"

namespace espalier::cli {

/// The checks as a table, the fix below each that has one, and a closing line.
std::string doctor_text(const std::vector<engine::doctor::Check>& checks);

/// A row per check with its fix, for --csv.
Table doctor_table(const std::vector<engine::doctor::Check>& checks);

/// The document of `doctor --json`.
nlohmann::ordered_json doctor_json(const std::vector<engine::doctor::Check>& checks);

}  // namespace espalier::cli
