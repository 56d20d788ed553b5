#pragma once

// Tested by: tests/unit/planners/innetwork/innetwork_test.cpp

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Plans with switches that copy (`multicast`) and add (`reduction`) as relays: broadcast and all_gather copy on the
/// way down, reduce and reduce_scatter add on the way up, all_reduce does both (docs/planners.md). Errors: unsupported
/// for collectives that gain nothing by it and where no switch can do what the collective needs; infeasible when a rank
/// cannot reach another; too_large past 4,096 ranks, or 1,024 where every rank is a root.
Result<Schedule> plan_innetwork(const Topology& topology, const Collective& collective);

}  // namespace espalier::planners
