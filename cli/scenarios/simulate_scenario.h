#pragma once

// Tested by: tests/options/options_test.py

#include <functional>
#include <optional>
#include <string>

#include "cli/flags/inputs.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/output/trace_file.h"
#include "cli/verbs/commands.h"
#include "scenario/read/read_scenario.h"
#include "scenario/report/report.h"

namespace espalier::cli {

/// What `simulate --scenario` takes.
struct ScenarioFlags {
  std::string file;
  std::string model;
  std::optional<std::uint64_t> seed;
  ProfileFlags profile;
  TraceFlags trace;
  bool with_routes = false;  ///< Also reads what other routes to experts make of it.
};

/// A scenario that was read, and the profile that counts; empty where none does.
struct LoadedScenario {
  scenario::Scenario scenario;
  std::string profile;
};

/// Why a scenario could not be used: what is wrong with its file, or, without that, something that has been shown.
struct LoadFailure {
  ExitCode code = ExitCode::check_failed;
  std::vector<Diagnostic> diagnostics = {};
};

/// Reads a scenario on the topology that is given, or that it names, spread otherwise than it says where that is given,
/// with a job of so many micro-batches where that is (ScenarioOptions::micro_batches). Warnings have been shown.
tl::expected<LoadedScenario, LoadFailure> try_load_scenario(
    const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags,
    const std::optional<scenario::Parallelism>& parallelism = {}, std::optional<std::int64_t> micro_batches = {});

/// As `try_load_scenario`; what is wrong has been shown, and the code is given.
tl::expected<LoadedScenario, ExitCode> load_scenario(const Console& console, const TopologyFlags& topology,
                                                     const ScenarioFlags& flags,
                                                     const std::optional<scenario::Parallelism>& parallelism = {});

/// Reads a scenario and runs it on the topology that is given, or that it names; prints what came of it.
ExitCode simulate_scenario(const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags);

/// Reads and runs it likewise, and hands over what came of it instead of printing. Errors are shown; gives their code.
ExitCode with_scenario_run(
    const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags,
    const std::function<void(const scenario::Scenario&, const scenario::JobReport&, const std::string& profile)>& done);

/// The same, but says what its end waited for and what single changes would save.
ExitCode explain_scenario(const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags);

}  // namespace espalier::cli
