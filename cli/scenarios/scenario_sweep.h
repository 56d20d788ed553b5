#pragma once

#include <string>

#include "cli/flags/sweep_flags.h"
#include "cli/jobs/stop.h"
#include "cli/scenarios/split_flags.h"
#include "sweep/shard.h"

namespace espalier::cli {

/// A sweep over scenarios: every combination of scenarios, machines, parameters, models, profiles, failures, seeds and
/// parallelisms.
struct ScenarioSweep {
  std::vector<std::string> scenarios;  ///< Files or shipped scenarios.
  SplitFlags splits;
  sweep::Shard shard;  ///< Rows are dealt one by one.
  unsigned threads = 1;
  std::string out;  ///< A file .csv or .jsonl; empty: standard output.
  bool is_dry = false;
};

/// Runs it and writes a row each (docs/sweeps.md). Takes machines and lists of values from the flags of a sweep.
OrStop<void> sweep_scenarios(const Console& console, const SweepFlags& flags, const ScenarioSweep& sweep);

}  // namespace espalier::cli
