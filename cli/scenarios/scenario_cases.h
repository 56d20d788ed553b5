#pragma once

// Tested by: tests/options/options_test.py

#include <vector>

#include "cli/flags/sweep_flags.h"
#include "cli/jobs/stop.h"
#include "cli/scenarios/scenario_rows.h"
#include "cli/scenarios/split_flags.h"
#include "sweep/shard.h"

namespace espalier::cli {

/// Every combination of scenarios, machines, parameters, failures, profiles, models and seeds, and of each those of
/// parallelisms; in the order of the values. Errors: usage for what is wrong with a value; those of reading have been
/// shown. Cost: reads a scenario for each of its machines where failures or parallelisms are listed.
OrStop<std::vector<ScenarioCase>> list_cases(const Console& console, const SweepFlags& flags, const SplitFlags& splits);

/// The cases of a shard: they are dealt one by one.
std::vector<ScenarioCase> keep_shard(const sweep::Shard& shard, const std::vector<ScenarioCase>& all);

}  // namespace espalier::cli
