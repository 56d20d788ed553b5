#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <cstdint>
#include <vector>

#include "planners/ring/ring_search.h"

namespace espalier::planners {

/// How many parallel arcs lead from vertex to vertex: counts[from][to]; the diagonal is not read.
using ArcCounts = std::vector<std::vector<std::uint32_t>>;

/// `count` directed cycles through all vertices that use no arc twice, each in order from vertex 0 on; none when there
/// are not so many or the search does not find them within `work`. Depth first over one cycle after the other, with
/// seeded restarts; a cycle is given up when a vertex that it still has to pass cannot be entered or left any more.
/// Requires: 2 to 64 vertices.
std::vector<std::vector<std::uint32_t>> find_disjoint_cycles(const ArcCounts& counts, std::size_t count,
                                                             WorkBudget& work);

}  // namespace espalier::planners
