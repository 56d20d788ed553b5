#pragma once

// Tested by: tests/unit/schedule/ecmp_test.cpp

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "forecast/candidate_runs.h"

namespace espalier::forecast {

/// How often switches' choice of paths is drawn, and from which seed on; none: routes are as planned.
struct EcmpDraws {
  std::uint32_t count = 0;
  std::uint64_t first_seed = 0;
};

/// Runs every result again, cut as it was, on routes drawn anew by each seed (schedule/ecmp.h), and notes the mean and
/// the worst time in it. `on_run` is told after each, from any thread. Errors: unsupported where no flow of any result
/// has a choice, or a plan is not stored as a schedule; those of the simulator.
Result<void> draw_paths(std::vector<CandidateRun>& results, const Topology& topology, const RunOptions& how,
                        const EcmpDraws& draws, const std::function<void()>& on_run);

}  // namespace espalier::forecast
