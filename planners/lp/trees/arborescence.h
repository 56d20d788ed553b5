#pragma once

// Tested by: tests/unit/planners/lp/trees/arborescence_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"

namespace espalier::planners {

/// The parent of each vertex in a cheapest spanning tree that leads away from `root`; the root's parent is itself.
/// `cost` has n x n entries, row by row: cost[u * n + v] is that of the edge from u to v; the diagonal is not read.
/// Cost: O(n^2).
/// Source: Y. J. Chu and T. H. Liu, Sci. Sinica 14 (1965); J. Edmonds, "Optimum branchings", J. Res. NBS 71B (1967);
/// along one path, for dense graphs: R. E. Tarjan, "Finding optimum branchings", Networks 7 (1977).
/// Costs are double, std::int64_t or BigInteger.
template <class Cost>
std::vector<std::uint32_t> cheapest_arborescence(const std::vector<Cost>& cost, std::uint32_t n, std::uint32_t root);

}  // namespace espalier::planners
