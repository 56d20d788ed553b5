#pragma once

// Tested by: tests/unit/compare/compare_timelines_test.cpp

#include <vector>

#include "compare/critical_chain.h"
#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// For how much of a timeline's critical path each rank was waited for, by lane. What a step takes and the wait before
/// it are its rank's own; a send that its receiver took up later than it began waited for the receiver.
///
/// In a ring all ranks finish together, and those who wait have long spans; but what the last byte waited for passes
/// again and again through the one that holds the others up, also where it only comes to them late.
std::vector<Picoseconds> path_by_rank(const Timeline& timeline, const KnownSchedule& known = {});

}  // namespace espalier::compare
