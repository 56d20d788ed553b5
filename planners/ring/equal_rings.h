#pragma once

// Tested by: tests/unit/planners/ring/ring_test.cpp

#include <optional>

#include "planners/ring/ring.h"
#include "planners/ring/ring_search.h"

namespace espalier::planners {

/// Whether ranks are joined by direct links only, and nothing but these limits them.
bool is_direct(const Topology& topology);

/// `count` rings of the same rate (bytes per second) over links that are whole multiples of it, one link per hop;
/// nothing when there are none, when the search does not find them, or when the rate is too fine a fraction for 64-bit
/// numbers. Requires: is_direct; 2 to 64 ranks; rate > 0.
std::optional<RingSet> find_equal_rings(const Topology& topology, const Rational& rate, std::size_t count,
                                        WorkBudget& work);

}  // namespace espalier::planners
