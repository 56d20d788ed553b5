#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <memory>

#include "planners/graph/logical_graph.h"
#include "planners/lp/orbit_graph.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::planners {

/// Routes for messages of `size` on a network whose ranks are all alike: those of rank 0 (route_variants_from), shifted
/// to where a pair is. With `lost`, on what is left of the network (whose ids they then have): where nothing is left of
/// a pair's routes they are searched there. Cost: one search, then a few look-ups per pair.
/// Requires: shifts of `whole`, an element for each rank; both topologies and `lost` outlive it.
PairRoutes alike_routes(std::shared_ptr<const OrbitGraph> shifts, const Topology& whole, const Topology& rest,
                        const Parts* gone, Bytes size);

}  // namespace espalier::planners
