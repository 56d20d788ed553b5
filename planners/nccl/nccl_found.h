#pragma once

// Tested by: tests/unit/planners/nccl/nccl_found_test.cpp

#include "planners/nccl/search/nccl_box.h"
#include "planners/ring/ring.h"
#include "planners/tree/spanning_tree.h"

namespace espalier::planners {

/// The rings that NCCL's own search finds (make_communicator), a ring for each channel, each hop on the least loaded of
/// its routes; channels on the same links are one ring. No rings where that search is not known to hold. All channels
/// carry as much, so an unlike part slows all of them, as in NCCL.
RingSet found_rings(const PlanningProblem& problem, const NcclEra& era);

/// The same of its trees in a machine, on the network that is demanded: a tree for each channel.
SpanningTrees found_trees(const Topology& machine, const NcclEra& era, const TreeDemand& demand);

}  // namespace espalier::planners
