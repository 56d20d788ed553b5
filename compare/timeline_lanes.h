#pragma once

// Tested by: tests/unit/compare/compare_timelines_test.cpp

#include <vector>

#include "schedule/timeline/timeline.h"

namespace espalier::compare {

struct Interval {
  Picoseconds begin;
  Picoseconds end;
};
using Intervals = std::vector<Interval>;

/// For each link the times of its wire spans.
std::vector<Intervals> wires_on_links(const Timeline& timeline);

/// For each link the ways, from the begin of the send to the end of the recv, of `timeline`'s chunks whose transfers
/// cross the link by the wire spans of `wired`. Requires: lanes numbered alike in both.
std::vector<Intervals> ways_on_links(const Timeline& timeline, const Timeline& wired);

/// For each rank or relay the times of its spans.
std::vector<Intervals> spans_on_ranks(const Timeline& timeline);

/// The time that lies in at least one of the intervals. Cost: O(n log n).
Picoseconds busy_time(Intervals intervals);

}  // namespace espalier::compare
