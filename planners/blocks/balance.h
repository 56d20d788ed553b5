#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <cstdint>

#include "base/result.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// How blocks are cut.
enum class Splitting : std::uint8_t {
  coarse,  ///< Ways may carry a fivehundredth more than their part, so that few blocks are cut.
  exact,   ///< To a unit.
};

/// all_to_all by a traffic matrix on boxes of several ranks: what one box sends another is spread over all ways between
/// them, so that every NIC sends and receives the same, whatever rank a block comes from or goes to. Ranks that send
/// more than their NIC's part hand some on inside their box first; what arrives at another rank than its own is handed
/// on there. All three steps of a block overlap chunk by chunk.
///
/// Errors: unsupported for other collectives and equal blocks, where ranks are not in boxes, where some rank of a box
/// does not reach the others directly, and where ranks must not relay. Cost: O(ranks^2).
/// Source: the balancing inside boxes of Y. Lei et al., "FAST: an efficient scheduler for all-to-all GPU
/// communication", 2025.
Result<Schedule> plan_balance(const PlanningProblem& problem, const Collective& collective,
                              Splitting splitting = Splitting::coarse);

}  // namespace espalier::planners
