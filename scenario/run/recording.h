#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <compare>
#include <map>
#include <set>
#include <vector>

#include "scenario/workload/job.h"
#include "sim/critical_path/critical_path.h"
#include "sim/model.h"

namespace espalier::scenario {

/// A rank's part in one of the runs that a call had: several where it was begun again around dead links.
struct RunPart {
  sim::RunId run;
  Rank rank;  ///< Of the call's group.
  auto operator<=>(const RunPart&) const = default;
};

/// What is to be found out about calls while a job runs, and what was. The same job gives the same runs each time, so
/// that what one time finds can be asked about the next time.
struct Recording {
  // Asked for.
  bool finds_roots = false;        ///< `roots`: every call is recorded while it is under way.
  std::set<RunPart> opens;         ///< Parts whose critical paths are wanted.
  std::vector<sim::Probe> probes;  ///< Waits whose causes are wanted.

  // Found.
  std::vector<sim::RunId> runs;                ///< By part of a call: the run in which it was through; none of its own.
  std::vector<Rank> roots;                     ///< By part: the rank of its group with whose entry its way began.
  std::map<RunPart, sim::CriticalPath> paths;  ///< Of the parts that were to be opened.
  std::vector<sim::Blame> blames;              ///< By probe.
  std::map<sim::RunId, std::int64_t> restarts;  ///< Runs with which a call began again, and when that was decided.
  std::vector<CallId> calls;                    ///< By run: whose it is; none of the background.
};

}  // namespace espalier::scenario
