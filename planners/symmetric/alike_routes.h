#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <memory>

#include "planners/graph/logical_graph.h"
#include "planners/lp/orbit_graph.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::planners {

/// Routes for messages of `size` on a network whose ranks are all alike: those of rank 0 (route_variants_from), shifted
/// to where a pair is. After a failure `rest` is the network without what is `gone`, and routes have its ids: those of
/// the pair that are still there, or those that a search of `rest` finds. Else `rest` is `whole` and `gone` null.
/// Cost: one search, then a few look-ups per pair.
/// Requires: shifts of `whole`, an element for each rank. Both topologies outlive it.
PairRoutes alike_routes(std::shared_ptr<const OrbitGraph> shifts, const Topology& whole, const Topology& rest,
                        const Parts* gone, Bytes size);

}  // namespace espalier::planners
