#pragma once

// Tested by: tests/unit/planners/bounds/like_sinks_test.cpp

#include <cstdint>
#include <vector>

#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// Where flows to ranks end, one for all that the network cannot tell apart: behind no flow of equal parts from all
/// ranks, or of one root's, is a smaller cut than behind the one that stands for it. In the order of the ranks.
///
/// What is left of a large network without its hubs are machines; two that are alike, arc by arc and to the same hubs,
/// can change places. Small networks have all their ranks. `root`: where flow begins, so that its machine stays in its
/// place; none: everywhere. Cost: O(arcs).
std::vector<std::uint32_t> like_sinks(const FlowNetwork& network, Rank root = {});

}  // namespace espalier::planners
