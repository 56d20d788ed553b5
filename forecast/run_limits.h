#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "planners/chooser.h"
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

/// How a schedule runs on a topology: sim::simulate, where it is all of the plan.
using RunOn = std::function<Result<sim::Report>(const Topology&, const sim::Options&, const sim::CopyEngines&)>;

/// Simulates a run with its critical path, then anew with every single change that the path and the busiest link
/// suggest: twice the bandwidth or half the latency of a class or link, no per-message overhead, twice the reduction
/// rate or backplane (sim/critical_path/single_changes.h), no launch, smaller and larger chunks, the schedules of
/// `others` with the chunks that suit them; and without what disturbs it. Nothing is estimated, and all is simulated
/// with the same endpoints, conditions and seed; the schedule stays what it was, so a planner might find more on the
/// changed network. Requires: as sim::simulate. Errors: those of the run itself; a change that cannot be simulated is
/// left out. `run_other` may know runs of this schedule and of the others: with these options, any cut. What `run_on`
/// gives without a critical path was not simulated: then nothing is changed. Cost: at most 20 simulations and about ten
/// per other candidate, so many at once as there are threads.
Result<RunLimits> find_run_limits(const Schedule& schedule, const Topology& topology, sim::Options options,
                                  std::span<const planners::Candidate> others = {},
                                  const sim::CopyEngines& engines = {}, unsigned threads = 1,
                                  const planners::Evaluate& run_other = {}, const RunOn& run_on = {});

}  // namespace espalier::forecast
