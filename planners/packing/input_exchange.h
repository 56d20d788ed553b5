#pragma once

// Tested by: tests/unit/planners/packing/packing_test.cpp

#include "schedule/schedule.h"

namespace espalier::planners {

/// The all_reduce of S bytes on N ranks that an all_gather of N S bytes is, when every rank adds up the shards that it
/// gets instead of storing them: shard r is rank r's input. It needs no rank to send sums on. Requires: an all_gather
/// of equal shards in which each rank sends its own shard alone (docs/bounds.md, Lemma 6).
Schedule exchange_inputs(const Schedule& gathering);

}  // namespace espalier::planners
