#pragma once

// Tested by: tests/unit/planners/tree/tree_test.cpp

#include <cstdint>
#include <span>
#include <vector>

namespace espalier::planners {

/// An edge of an undirected multigraph, by vertex numbers.
struct PlainEdge {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

/// Splits edges into `count` edge-disjoint spanning trees of `vertices` vertices, each given by edge numbers, or finds
/// that there are none and returns nothing. Trees grow breadth first in turns, tree i from roots[i] on, and what does
/// not fit is inserted by exchanging edges between trees. Source: J. Edmonds, "Minimum partition of a matroid into
/// independent subsets", J. Res. NBS 69B, 1965 (the exchanges). Cost: O(edges) exchange searches of O(edges x vertices)
/// each at worst; most edges need none.
std::vector<std::vector<std::uint32_t>> split_into_trees(std::size_t vertices, std::span<const PlainEdge> edges,
                                                         std::span<const std::uint32_t> roots);

}  // namespace espalier::planners
