#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <vector>

#include "planners/graph/resource_graph.h"
#include "planners/lp/column_generation.h"
#include "planners/ring/ring.h"

namespace espalier::planners {

/// The cycles of a program's solution (RingOracle's columns, amounts in the graph's unit) as rings over links.
/// Parallel links get no more than their rate; a cycle that does not fit on one of them is split. Cycles with the
/// largest amounts come first and take the narrowest links into which they fit.
RingSet place_rings(const Topology& topology, const ResourceGraph& graph,
                    const std::vector<ColumnSolution::Part>& parts);

}  // namespace espalier::planners
