#pragma once

// Tested by: tests/property/compare/timelines_test.cpp

#include <cstdint>

#include "schedule/timeline/timeline.h"

namespace espalier {

/// Leaves the spans of one chunk in `every`: those of a transfer t and a chunk c for which t + c is a multiple of it.
/// Which they are depends on nothing else, so that what is left of two timelines pairs. Says so in the origin: "run, 1
/// chunk in 4". Requires: a timeline that is not thinned, or by a divisor of `every`; `every` at least 1.
void thin_timeline(Timeline& timeline, std::uint32_t every);

/// Thins two timelines until the same is left of both, as far as it was in both. Returns by how much they are thinned.
std::uint32_t thin_alike(Timeline& a, Timeline& b);

/// By how much a timeline is thinned, from its origin; 1 where it is whole.
std::uint32_t thinning_of(const Timeline& timeline);

/// About how many bytes `write_chrome_trace` writes for a timeline.
std::uint64_t chrome_trace_bytes(const Timeline& timeline);

}  // namespace espalier
