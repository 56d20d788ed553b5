#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <optional>

#include "planners/ring/ring.h"
#include "planners/ring/ring_search.h"

namespace espalier::planners {

/// `count` rings of the same rate (bytes per second), each link carrying whole multiples of it, on any network; nothing
/// when no cut allows so many or the search finds none.
///
/// All rings are laid out as if they were alone, then those that meet on overfull links are laid out again and again,
/// overfull links getting dearer each time, until they have settled who goes where. Spends one step of `work` per ring
/// laid out, about 4 ranks^3 operations.
/// Requires: rate > 0; every rank reaches every other.
/// Source: L. McMurchie, C. Ebeling, "PathFinder: a negotiation-based performance-driven router for FPGAs", FPGA 1995.
std::optional<RingSet> negotiate_rings(const PlanningProblem& problem, const Rational& rate, std::size_t count,
                                       WorkBudget& work);

}  // namespace espalier::planners
