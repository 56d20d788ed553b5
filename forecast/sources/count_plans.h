#pragma once

// Tested by: tests/unit/forecast/sources/count_plans_test.cpp

#include "schedule/schedule_source.h"
#include "topology/topology.h"

namespace espalier::forecast {

/// The schedules of all_to_alls with counts per peer (Communicator::plan_counts): of a matrix that boxes can balance
/// (planners/blocks/balance.h) that schedule, where it takes a tenth and two hops through a host less than direct
/// messages by links' loads and latencies; else none, for direct messages. Those of the last 64 matrices are kept.
/// Deterministic and thread-safe. Cost of a new matrix that is large enough for a gain: some O(ranks^2).
ScheduleSource plans_for_counts(Topology topology);

}  // namespace espalier::forecast
