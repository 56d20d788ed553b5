#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/flags/prediction_flags.h"
#include "cli/jobs/stop.h"
#include "cli/output/console.h"
#include "cli/reports/simulation_output.h"
#include "forecast/candidate_runs.h"

namespace espalier::cli {

/// What is to be simulated: candidates with their bound, and the names of the table's columns.
struct SimulationWork {
  Collective collective;
  planners::Candidates candidates;
  std::vector<std::string> algorithms;
};

/// The plan that was given, or what the planners of -a make of the topology, rings to be walked among it
/// (forecast::find_walked_ring). Moves the plan out of the input.
/// Errors: those of the planners when none makes anything; wrong usage for flags that contradict the input.
OrStop<SimulationWork> find_work(const Console& console, const PredictionFlags& flags, Input& input,
                                 const Prediction& prediction);

/// Simulates all sizes with all algorithms, and finds the fastest and the crossovers. Its results point into `work` and
/// `runs`, which must live as long.
OrStop<Simulation> simulate_sizes(const Console& console, const PredictionFlags& flags, const Topology& topology,
                                  const SimulationWork& work, const Prediction& prediction,
                                  forecast::CandidateRuns& runs);

/// Why a run in detail (forecast::run_in_detail) does not take what the result takes; empty where it does.
std::string stored_form_text(const forecast::CandidateRun& result, const sim::Report& in_detail);

}  // namespace espalier::cli
