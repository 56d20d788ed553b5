#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Trees of one or two hops along the routes of topology/routes.h: from every root straight to all ranks; or to one
/// rank of each group, the one in its own place, which serves its group. Groups are the machines (Node::host), and the
/// ranks behind one switch. What comes back loads no link past `capacities` when every root has its demand, which
/// the loads prove; nothing where none of these does that. For fabrics of several tiers at any size. `direction` says
/// which trees, as for a packing: out-trees forward, in-trees reversed. Requires: `capacities` per arc of
/// FlowNetwork(topology, direction), `demands` per rank. Cost: the routes from every rank, once per grouping;
/// past 4,096 ranks, or where backplanes limit, nothing is tried.
std::optional<std::vector<Arborescence>> route_trees(const Topology& topology, Direction direction,
                                                     std::span<const std::int64_t> capacities,
                                                     std::span<const std::int64_t> demands);

}  // namespace espalier::planners
