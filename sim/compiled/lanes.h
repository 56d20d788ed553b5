#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <cstdint>
#include <limits>
#include <vector>

#include "base/id.h"
#include "schedule/schedule.h"

namespace espalier::sim {

using LaneIndex = std::uint32_t;
inline constexpr LaneIndex no_lane = std::numeric_limits<std::uint32_t>::max();

/// A schedule's transfers, sorted into lanes: the transfers of one channel from one rank to another are handed over in
/// program order, chunk by chunk.
struct Lanes {
  std::vector<TransferId> first;  ///< By lane, ascending.
  std::vector<TransferId> next;   ///< By transfer: the one after it on its lane; none at the end.
};

/// Cost: O(transfers + routes + channels).
Lanes make_lanes(const Schedule& schedule);

}  // namespace espalier::sim
