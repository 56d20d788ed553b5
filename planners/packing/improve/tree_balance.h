#pragma once

// Tested by: tests/unit/planners/packing/improve/few_trees_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

/// Trees in the place of these, one of a group each, that together use what there is room for most evenly, so that one
/// tree can carry much of what a root has to carry.
///
/// A tree is changed rank by rank: its edge to its parent is replaced by the path, from any rank that is not below it,
/// that costs least at some prices; among equals by the one that adds least to the sum over resources of (use over
/// room)^6. At the prices that prove a packing best, trees of a best packing so stay trees of a best packing. None gets
/// deeper than `max_depth`, where not 0, or than it is. `prices` and `room` by resource, as in ColumnSolution. Cost:
/// some shortest paths per rank and tree.
std::vector<Column> balanced_trees(const OrbitGraph& orbits, const TreeOracle& oracle,
                                   std::span<const BigInteger> prices, std::vector<Column> columns,
                                   std::span<const double> room, std::uint32_t max_depth);

}  // namespace espalier::planners
