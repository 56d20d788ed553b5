#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include "base/rational.h"
#include "planners/planning_problem.h"

namespace espalier::planners {

/// Bytes per second that no set of rings exceeds: every ring leaves and enters every set of nodes that separates ranks,
/// and passes every rank's backplane twice. Requires: two ranks or more; every rank reaches every other.
/// Cost: two maximum flows per rank.
Rational ring_limit(const PlanningProblem& problem);

}  // namespace espalier::planners
