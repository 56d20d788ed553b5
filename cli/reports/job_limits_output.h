#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>

#include "cli/output/table.h"
#include "scenario/read/read_scenario.h"
#include "scenario/report/job_path.h"

namespace espalier::cli {

/// What a scenario's end waited for, and what single changes would save. `profile`: the one that counts, or empty.
std::string job_limits_text(const scenario::Scenario& scenario, const scenario::JobLimits& limits,
                            const std::string& profile);
/// What each single change would save, for --csv.
Table job_improvements_table(const scenario::JobLimits& limits);
/// Schema espalier/explain-scenario/1.
nlohmann::ordered_json job_limits_json(const scenario::Scenario& scenario, const scenario::JobLimits& limits,
                                       const std::string& profile);

}  // namespace espalier::cli
