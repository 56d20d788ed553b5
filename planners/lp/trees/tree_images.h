#pragma once

// Tested by: tests/property/planners/tree_program_test.cpp

#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/flow_oracle.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

// What a program on the orbits of a network stands for on the network itself: the images of its columns under every
// automorphism, each with its part of the column's amount; like images of one tree once. Weights are whole
// (whole_forest). Cost: ranks x edges of a tree per column.

/// The trees of all roots. Trees of a mirrored graph get the rank in their middle as root, and an image of their own
/// inward. Requires: a solution of TreeOracle(orbits, groups) with parts.
Forest lift(const Topology& topology, const OrbitGraph& orbits, const TreeGroups& groups,
            const ColumnSolution& solution);

/// The trees of all sources of a flow. Requires: a solution of FlowOracle(orbits, demands).
Forest lift(const Topology& topology, const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
            const ColumnSolution& solution);

}  // namespace espalier::planners
