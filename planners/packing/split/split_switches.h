#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstdint>
#include <span>

#include "planners/graph/work_budget.h"
#include "planners/packing/split/capacity_graph.h"

namespace espalier::planners {

/// Takes every vertex that is no rank of the network out of its graph by splitting off pairs of its edges, so that
/// trees with the demands still pack into what is left; false, and the graph in pieces, when the budget is spent.
///
/// Switches whose splitting no cut can notice go first: those with all capacity from or to one neighbour, and those
/// between two, such as NICs. Of the others, those with the fewest pairs first, each is dealt out evenly over the pairs
/// of its neighbours, which gives shallow trees. Where that cuts too much, pair by pair as far as every cut allows.
/// Requires: as much capacity into every switch as out of it; the condition of DemandOracle holds.
/// Cost: one maximum flow per rank for each switch, or for each pair of its neighbours.
/// Source: W. Mader, "Konstruktion aller n-fach kantenzusammenhaengenden Digraphen", European J. Combinatorics 3, 1982;
/// A. Frank, "On connectivity properties of Eulerian digraphs", 1989; B. Jackson, "Some remarks on arc-connectivity,
/// vertex splitting, and orientation in graphs and digraphs", J. Graph Theory 12, 1988; L. Zhao et al., "ForestColl",
/// arXiv 2402.06787.
bool split_switches(CapacityGraph& graph, const FlowNetwork& network, std::span<const std::int64_t> demands,
                    WorkBudget& budget);

}  // namespace espalier::planners
