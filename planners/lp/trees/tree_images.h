#pragma once

#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/flow_oracle.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

/// The trees of all roots that a solution stands for: the images of its columns under every automorphism, each with its
/// part of the column's amount; like images of one tree once. Shares are parts of what a root of share 1 carries
/// (equal sharing), or of all that is carried (free sharing). Trees of a mirrored graph get the rank in their middle as
/// root, and an image of their own inward. Requires: a solution of TreeOracle(orbits, groups), attained. Cost: ranks x
/// edges of a tree per column.
std::vector<ProgramTree> tree_images(const OrbitGraph& orbits, const TreeGroups& groups,
                                     const ColumnSolution& solution);

/// The same for a flow: trees of all sources. Requires: a solution of FlowOracle(orbits, demands), attained.
std::vector<ProgramTree> flow_images(const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
                                     const ColumnSolution& solution);

}  // namespace espalier::planners
