#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/output/table.h"
#include "scenario/read/read_scenario.h"
#include "scenario/report/averaging_report.h"
#include "scenario/report/report.h"

namespace espalier::cli {

/// A run of Scenario::other.
struct OtherRun {
  Picoseconds elapsed;
  std::int64_t max_bytes_sent = 0;  ///< scenario::max_bytes_sent.
};

/// The tables of `simulate --scenario`: the whole, calls, ranks, links. `profile`: the one that counts, or empty.
std::string scenario_text(const scenario::Scenario& scenario, const scenario::JobReport& report,
                          const std::string& profile, const std::optional<OtherRun>& plain = std::nullopt);

/// "nine in ten measured steps took 0.84 to 1.20 times as long (80 runs, 6 sources)", or why none is like it.
std::string step_range_text(const scenario::TrainingFigures& training);
/// {"low", "high", "part", "runs", "sources", "outside"} of a step of so many seconds.
nlohmann::ordered_json step_range_json(const scenario::TrainingFigures& training, double step);

/// "12 waits of kernels for other streams are not in the trace, and guessed". Of a scenario with such.
std::string guessed_waits_text(const scenario::Scenario& scenario);

/// A row per kind of call, for --csv; of a job without calls the titles alone.
Table calls_table(const scenario::Scenario& scenario, const scenario::JobReport& report);

/// The same and each rank's time as "espalier/scenario/1".
nlohmann::ordered_json scenario_json(const scenario::Scenario& scenario, const scenario::JobReport& report,
                                     const std::string& profile, const std::optional<OtherRun>& plain = std::nullopt);

}  // namespace espalier::cli
