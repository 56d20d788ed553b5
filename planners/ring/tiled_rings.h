#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <vector>

#include "planners/graph/rank_groups.h"
#include "planners/ring/ring.h"

namespace espalier::planners {

/// What is left of a network when all machines but the first two are taken out of it.
struct MachinePair {
  Topology topology;
  std::vector<Rank> ranks;  ///< By rank of the pair, its rank in the whole network.
};

/// Requires: two machines or more.
MachinePair first_pair(const Topology& topology, const RankGroups& groups);

/// The pair's rings drawn out over all machines: every other machine is passed as the first of the pair is, those in
/// between as the second. Rings that pass a machine of the pair more than once, or for which the network has no room
/// left, are left out. Requires: machines of equal size.
std::vector<Ring> tile_rings(const Topology& topology, const RankGroups& groups, const MachinePair& pair,
                             const RingSet& pair_rings);

}  // namespace espalier::planners
