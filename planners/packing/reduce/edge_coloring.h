#pragma once

// Tested by: tests/unit/planners/packing/reduce/edge_coloring_test.cpp

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace espalier::planners {

/// Colours the edges of a bipartite multigraph so that no two edges at a vertex have the same colour: by edge, a number
/// below `colors`.
///
/// Edges get colours one by one; where their ends have no free colour in common, two colours change places along the
/// path that keeps them from one. Edges are pairs of a left and a right vertex, both numbered from 0.
/// Requires: no vertex with more than `colors` edges. Cost: O(edges x (vertices + colors)).
/// Source: D. Koenig, "Ueber Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre", Math. Ann. 77, 1916.
std::vector<std::uint32_t> color_edges(std::span<const std::pair<std::uint32_t, std::uint32_t>> edges,
                                       std::uint32_t colors);

}  // namespace espalier::planners
