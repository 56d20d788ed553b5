#pragma once

#include <vector>

#include "planners/lp/pattern_program.h"
#include "planners/lp/resource_graph.h"
#include "planners/ring/ring.h"

namespace espalier {

/// The cycles of a program's solution (RingOracle's patterns, amounts in the graph's unit) as rings over links.
/// Parallel links get no more than their rate; a cycle that does not fit on one of them is split. Cycles with the
/// largest amounts come first and take the narrowest links into which they fit.
RingSet place_rings(const Topology& topology, const ResourceGraph& graph,
                    const std::vector<PatternSolution::Part>& parts);

}  // namespace espalier
