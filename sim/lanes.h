#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/id.h"
#include "schedule/dependencies.h"
#include "schedule/schedule.h"

namespace espalier::sim {

using LaneIndex = std::uint32_t;
inline constexpr LaneIndex no_lane = std::numeric_limits<std::uint32_t>::max();

/// The transfers of one channel from one rank to another: handed over in program order, chunk by chunk.
/// Invariant: a lane either has one chunk on its way to the first link, or waits for one chunk of one other transfer,
/// or has nothing left.
struct Lane {
  std::int64_t ready = 0;       ///< The latest of all that its current chunk is known to wait for.
  std::int64_t held_until = 0;  ///< Its next chunk would only stand in a queue if it asked earlier than this.
  TransferId transfer;          ///< The transfer whose chunk is next; none at the end.
  std::uint32_t chunk = 0;
  std::uint32_t dependency = 0;      ///< How many of the transfer's dependencies have been looked at for this chunk.
  LaneIndex next_waiting = no_lane;  ///< The next lane that waits for the same transfer.
  std::uint32_t awaited_chunk = 0;
  Wait awaited = Wait::arrival;
};

/// A schedule's transfers, sorted into lanes.
struct Lanes {
  std::vector<Lane> lanes;               ///< By first transfer.
  std::vector<TransferId> next_on_lane;  ///< By transfer; none at the end of a lane.
};

/// Cost: O(transfers + routes + channels).
Lanes make_lanes(const Schedule& schedule);

}  // namespace espalier::sim
