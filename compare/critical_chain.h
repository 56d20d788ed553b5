#pragma once

// Tested by: tests/property/compare/critical_chain_test.cpp

#include <vector>

#include "schedule/dependencies.h"
#include "schedule/schedule.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// One span of a critical path with the part of the time that it accounts for.
struct ChainStep {
  std::uint32_t span = 0;  ///< Index into the timeline's spans.
  Picoseconds begin;       ///< When it began.
  Picoseconds until;       ///< When the next step took over: its begin, or this one's end where that is earlier.
  Picoseconds waited;      ///< From this one's end to the next one's begin.
};

/// A schedule with its dependencies, to tell apart what a transfer needed from what merely was there in time.
struct KnownSchedule {
  const Schedule* schedule = nullptr;
  const Dependencies* dependencies = nullptr;
};

/// What the last span waited for, from the first step to the last (docs/compare.md, "The critical path of a timeline").
/// Without a schedule a send is taken to wait for whatever arrived at its rank last before it.
/// Requires: when a schedule is known, it is the one that ran; no span ends before it begins. Cost: O(n log n) in the
/// number of spans, whatever is in them, and for each step of the path O(log n) per dependency of its transfer; up to
/// 64 bytes for each span.
std::vector<ChainStep> find_critical_chain(const Timeline& timeline, const KnownSchedule& known = {});

}  // namespace espalier::compare
