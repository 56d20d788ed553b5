#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "forecast/candidate_runs.h"
#include "forecast/question.h"

namespace espalier::forecast {

/// What a question's algorithms give at its sizes.
struct Answer {
  std::vector<std::string> algorithms;  ///< In column order; those that cannot run so are left out.
  std::vector<CandidateRun> results;    ///< Size by size, algorithm by algorithm; they point into candidates and runs.
  std::vector<std::size_t> winners;     ///< By size the index into `results`, "auto" only where no other is as fast.
  std::vector<Crossover> crossovers;
  std::vector<planners::Refusal> refused;  ///< Planners that made nothing, and algorithms that cannot run so.
};

/// The algorithms of a question that have a candidate. Errors: the first refusal where none has.
Result<std::vector<std::string>> made_algorithms(const std::vector<std::string>& asked,
                                                 const planners::Candidates& candidates);

/// Runs algorithms at sizes, several sizes at once, and finds the fastest and where that changes. `on_run` is told what
/// runs, from any thread. Requires: made_algorithms; sizes that rise. Errors: those of runs; of algorithms that cannot
/// run so the first where no other is left.
Result<Answer> answer(const std::vector<std::string>& algorithms, const std::vector<Bytes>& sizes,
                      const planners::Candidates& candidates, CandidateRuns& runs,
                      const std::function<void(const std::string&)>& on_run = {});

/// Runs one result again with its timeline and critical path, which large tables do without. Of rings that were walked
/// their stored schedule runs, which may take another time.
Result<sim::Report> run_in_detail(const CandidateRun& result, const Topology& topology, const RunOptions& how);

}  // namespace espalier::forecast
