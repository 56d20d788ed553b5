#pragma once

// Tested by: tests/unit/planners/ring/ring_test.cpp

#include "planners/ring/ring.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// The rings as trees that are paths: for all_reduce and the sharded collectives one from (or to) every rank per ring,
/// for rooted ones those of the root; weights in proportion to the rings' rates.
Forest forest_of_rings(const RingSet& set, const Collective& collective);

/// Whether forest_of_rings deals whole shards to the rings, as storing a part of each for every ring would take too
/// many transfers.
bool deals_shards(const RingSet& set, const Collective& collective);

/// To how many rings a stored plan deals whole shards; 1 where each goes round every ring, and of plans that are none
/// of rings. Shards are dealt in turn, so that the first one that goes round a ring again tells how many there are.
std::uint32_t rings_dealt_to(const Schedule& schedule);

}  // namespace espalier::planners
