#pragma once

// Tested by: tests/property/planners/large_networks_test.cpp

#include <cstdint>
#include <span>

#include "planners/graph/parent_tree.h"
#include "planners/graph/resource_graph.h"

namespace espalier::planners {

/// A tree that grows from `root`, always by the rank that is nearest to what it spans, over nodes that are no ranks;
/// `inward` if data flows to the root. Ranks that must not relay become leaves. On a mirrored graph no spanning tree of
/// ranks is shorter when none has to be a leaf. Requires: lengths by edge that are not negative; a root that may relay;
/// every rank reaches every other. Cost: O((nodes + edges) log nodes) where no node is reached from many ranks in turn.
/// Source: R. C. Prim, "Shortest connection networks and some generalizations", Bell System Technical Journal 36
/// (1957).
ParentTree grow_tree(const ResourceGraph& graph, std::uint32_t root, bool inward, std::span<const double> lengths);

}  // namespace espalier::planners
