#pragma once

// Tested by: tests/unit/forecast/run_limits_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "forecast/candidate_runs.h"
#include "sim/core/utilisation.h"
#include "sim/critical_path/path_times.h"
#include "sim/simulate.h"

namespace espalier::forecast {

/// One change, and the run with it.
struct Improvement {
  std::string change;  ///< "twice the bandwidth of nvlink2 (48 links)".
  std::string kind;    ///< "bandwidth", "latency", "overhead", "reduction", "backplane", "engines", "launch",
                       ///< "conditions", "rounds", "chunk" or "algorithm".
  Picoseconds elapsed;
  Bytes chunk;
};

/// What limits a run, and what would help.
struct RunLimits {
  sim::Report report;  ///< With its critical path, and with whom it shared.
  sim::ModelKind model = sim::ModelKind::link;
  std::vector<sim::PathTime> path;        ///< Sums to the time elapsed; most first.
  std::vector<sim::LinkShare> full;       ///< Links busy for more than 90 % of the time, busiest first.
  std::vector<Improvement> improvements;  ///< Fastest first; also those that save nothing.
};

/// Simulates a run with its critical path, then anew with every single change that the path and the busiest link
/// suggest: twice the bandwidth or half the latency of a class or link, no per-message overhead, twice the reduction
/// rate or backplane (sim/critical_path/single_changes.h), no launch, smaller and larger chunks, the schedules of
/// `others` with the chunks that suit them; and without what disturbs it. Nothing is estimated, and all is simulated
/// with the same endpoints, conditions and seed; the schedule stays what it was, so a planner might find more on the
/// changed network. Errors: those of the run itself; a change that cannot be simulated is left out. `known`: runs of
/// this candidate and of the others with these options, any cut; null: none. Without a critical path, as of a plan that
/// was repaired, nothing is changed. Cost: at most 20 simulations and about ten per other candidate, so many at once as
/// there are threads.
Result<RunLimits> find_run_limits(const planners::Candidate& candidate, const Topology& topology, sim::Options options,
                                  std::span<const planners::Candidate> others = {},
                                  const sim::CopyEngines& engines = {}, unsigned threads = 1,
                                  CandidateRuns* known = nullptr);

}  // namespace espalier::forecast
