#pragma once

// Tested by: tests/options/options_test.py

#include <string>

#include "cli/flags/sweep_flags.h"
#include "cli/jobs/stop.h"
#include "cli/scenarios/split_flags.h"
#include "sweep/shard.h"

namespace espalier::cli {

/// How a sweep over scenarios is run; what is swept is in SweepFlags.
struct ScenarioSweep {
  SplitFlags splits;
  sweep::Shard shard;  ///< Rows are dealt one by one.
  unsigned threads = 1;
  std::string out;      ///< A file .csv or .jsonl; empty: standard output.
  bool resume = false;  ///< The file has rows already, which are not run again.
  bool is_dry = false;
};

/// Runs it and writes a row each (docs/sweeps.md). Takes machines and lists of values from the flags of a sweep.
OrStop<void> sweep_scenarios(const Console& console, const SweepFlags& flags, const ScenarioSweep& sweep);

}  // namespace espalier::cli
