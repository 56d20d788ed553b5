#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <optional>
#include <vector>

#include "base/rational.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A set of nodes that blocks have to leave or to enter.
struct BlockCut {
  Rational time_per_byte;     ///< Seconds per byte of S that what crosses takes at least.
  std::vector<NodeId> nodes;  ///< The set that it leaves, in id order.
  Rational crossing;          ///< Bytes that cross for each byte of S.
};

/// The tightest of the cuts that bind on most machines, for an all_to_all of any blocks: every rank alone, every host,
/// every switch with the ranks and hosts that have no other way out, and everything behind such switches; each left and
/// entered. On fabrics of levels that can spread what a box sends over all that leaves it, one of them is the bound.
/// A time of zero where nothing crosses. Cost: O(ranks^2) for each level.
BlockCut tightest_block_cut(const Topology& topology, const Collective& collective);

/// The same for one set of nodes, as it is left.
BlockCut block_cut(const Topology& topology, const Collective& collective, const std::vector<bool>& inside);

}  // namespace espalier::planners
