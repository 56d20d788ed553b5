#pragma once

#include <span>
#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/tree_oracle.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier {

/// Trees that are known already, as columns of a program: those whose root is the root of a group. A program that
/// begins with them has less to find. Requires: spanning trees on the graph's topology, in-trees where groups are
/// inward; a graph that is not mirrored.
std::vector<Column> columns_of(const OrbitGraph& orbits, const TreeGroups& groups, std::span<const Arborescence> trees);

}  // namespace espalier
