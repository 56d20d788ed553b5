#pragma once

// Tested by: tests/unit/planners/lp/trees/tree_memory_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/graph/resource_graph.h"

namespace espalier::planners {

/// Stands for a rank or an edge that is gone.
inline constexpr std::uint32_t gone = UINT32_MAX;

/// Makes a tree whole that lost some of its paths: a spanning tree of the graph's ranks that keeps the paths that are
/// whole where it can. What is cut off is joined, at its top if possible, to a rank that is nearest, by a path through
/// nodes that are not ranks. Nothing where there is no such path. The answer lists the paths' edges in the direction of
/// the data, path after path. Requires: paths of a tree of `root`, no rank being the far end of
/// two. Cost: the graph's edges per gap.
std::optional<std::vector<std::uint32_t>> repair_tree(const ResourceGraph& graph, std::vector<RankPath> paths,
                                                      std::uint32_t root, bool inward);

}  // namespace espalier::planners
