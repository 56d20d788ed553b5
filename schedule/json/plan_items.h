#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include "schedule/json/plan_cursor.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// The lists and objects of a plan, each read at the cursor into the schedule; false when the cursor has failed.
/// Transfers come after slices, both after collective and units.
bool read_slices(PlanCursor& cursor, Schedule& schedule);
bool read_transfers(PlanCursor& cursor, const Topology& topology, Schedule& schedule);
bool read_bound(PlanCursor& cursor, const Topology& topology, Schedule& schedule);
bool read_chunking(PlanCursor& cursor, Schedule& schedule);

}  // namespace espalier
