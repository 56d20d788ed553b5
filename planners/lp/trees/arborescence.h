#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"

namespace espalier {

/// The parent of each vertex in a cheapest spanning tree that leads away from `root`; the root's parent is itself.
/// `cost` has n x n entries, row by row: cost[u * n + v] is that of the edge from u to v; the diagonal is not read.
/// Cost: O(n^2).
/// Source: Y. J. Chu and T. H. Liu, Sci. Sinica 14 (1965); J. Edmonds, "Optimum branchings", J. Res. NBS 71B (1967);
/// along one path, for dense graphs: R. E. Tarjan, "Finding optimum branchings", Networks 7 (1977).
std::vector<std::uint32_t> cheapest_arborescence(std::span<const double> cost, std::uint32_t n, std::uint32_t root);
std::vector<std::uint32_t> cheapest_arborescence(std::span<const std::int64_t> cost, std::uint32_t n,
                                                 std::uint32_t root);
std::vector<std::uint32_t> cheapest_arborescence(std::span<const BigInteger> cost, std::uint32_t n, std::uint32_t root);

}  // namespace espalier
