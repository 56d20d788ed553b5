#pragma once

// Tested by: tests/unit/compare/stragglers_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compare/read/rank_calls.h"

namespace espalier::compare {

/// What one rank's coming late to collectives cost the others.
struct Straggler {
  std::uint32_t rank = 0;
  std::size_t last = 0;  ///< Calls to which it came last.
  double cost = 0;       ///< Seconds by which these would have ended earlier, had it come with the one before it.
};

/// The same of one kind of call.
struct LateCalls {
  std::string group;
  std::string collective;
  std::size_t calls = 0;
  double cost = 0;         ///< Of whoever came last.
  std::uint32_t rank = 0;  ///< Who cost most of it,
  double of_rank = 0;      ///< and how much.
};

/// Who comes late to which collective.
struct Stragglers {
  std::size_t calls = 0;         ///< That two ranks or more recorded.
  double span = 0;               ///< Seconds from the first call's begin to the last one's end, of the longest record.
  double cost = 0;               ///< Of all ranks.
  std::vector<Straggler> ranks;  ///< Most cost first.
  std::vector<LateCalls> kinds;  ///< Likewise.
};

/// The call of each rank with one group, collective and number is one. A collective ends for all at once, and so the
/// rank that is in it for the shortest time came last: no clocks are compared. Calls without numbers are counted from
/// the end of each record, which may have lost its beginning. Requires: records of different ranks.
/// Cost: O(n log n) in the calls.
Stragglers find_stragglers(std::span<const RankCalls> records);

}  // namespace espalier::compare
