#pragma once

// Tested by: tests/unit/scenario/run/plans_test.cpp

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::scenario {

/// The part of a network that a process group plans its collectives on.
struct Footprint {
  Topology topology;  ///< The group's ranks are its only ranks.
  Parts places;       ///< By node and by link: which one of the network it is.
};

/// What a group uses, so that groups that are at work at once leave each other's GPUs alone, and so that planning costs
/// what the group's size says, not the network's. Of these the first that joins all of its ranks:
/// (1) all ranks of the network: the network;
/// (2) ranks of one host: what is in that host, other ranks left out;
/// (3) the ranks, and the nodes that only forward and lie on a way of fewest links between two of them;
/// (4) the network, where other ranks forward too.
/// `dead`: by link of the network; those that are true are not there. Empty: all are there.
/// Errors: infeasible when the ranks do not reach each other in the network.
/// Cost: O(ranks x links).
Result<Footprint> find_footprint(const Topology& network, std::span<const Rank> ranks, const std::vector<bool>& dead);

/// A text that two footprints share exactly when they are equal but for names: what is planned on one is a plan for the
/// other, node by node and link by link.
std::string shape_of(const Topology& topology);

}  // namespace espalier::scenario
