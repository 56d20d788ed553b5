#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"

namespace espalier::planners {

/// Up to here a cheapest cycle is found exactly.
inline constexpr std::uint32_t max_held_karp_vertices = 16;

/// A cheapest directed cycle through all of n vertices, in order from vertex 0 on. `cost` has n x n entries, row by
/// row: cost[u * n + v] is that of the arc from u to v; the diagonal plays no part. Ties go to the lowest numbers.
/// Requires: 2 to `max_held_karp_vertices` vertices, costs that are not negative.
/// Cost: 2^n n^2 / 8 additions; 16 vertices take some milliseconds.
/// Source: M. Held, R. M. Karp, "A dynamic programming approach to sequencing problems", J. SIAM 10(1), 1962.
std::vector<std::uint32_t> cheapest_cycle(std::span<const double> cost, std::uint32_t n);
std::vector<std::uint32_t> cheapest_cycle(std::span<const BigInteger> cost, std::uint32_t n);

/// A cycle through any number of vertices made cheaper: two segments that follow each other change places as long as
/// that helps. Begins with vertex 0. Cost: about n^3 steps.
std::vector<std::uint32_t> improve_cycle(std::span<const double> cost, std::vector<std::uint32_t> order);

/// Cheap cycles, the cheapest first: from each of four starts to the nearest next vertex, then improved.
std::vector<std::vector<std::uint32_t>> cheap_cycles(std::span<const double> cost, std::uint32_t n);

}  // namespace espalier::planners
