#pragma once

// Tested by: tests/unit/compare/compare_timelines_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/timeline/timeline.h"

namespace espalier::compare {

/// Two timelines made comparable: lanes have the same numbers in both, and chunks are merged where they differ.
struct AlignedTimelines {
  Timeline a;
  Timeline b;
  bool by_transfer = false;        ///< Chunks were merged: every transfer has one span per lane and phase, chunk 0.
  std::vector<std::string> notes;  ///< What was done, for people.
};

/// Lanes are paired by name; where no name of one kind is in both timelines and there are as many, by number. Where a
/// transfer has other chunks in one timeline than in the other, the chunks of all transfers are merged. Where one is
/// thinned, the other is thinned alike (schedule/timeline/thin_timeline.h).
AlignedTimelines align(Timeline a, Timeline b);

/// Spans of the two timelines that are the same thing, as indices.
struct SpanPair {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

struct Pairing {
  std::vector<SpanPair> pairs;        ///< By transfer, chunk, phase and lane.
  std::vector<std::uint32_t> only_a;  ///< Indices of spans without a counterpart.
  std::vector<std::uint32_t> only_b;
};

/// Pairs spans by (transfer, chunk, phase, lane); several of one kind in the order in which they begin.
/// Requires: what `align` gave; fewer than 2^32 spans. Cost: O(n log n).
Pairing pair_spans(const Timeline& a, const Timeline& b);

/// The first begin and the last end of all spans; both 0 of none.
struct Extent {
  Picoseconds begin;
  Picoseconds end;
  [[nodiscard]] Picoseconds length() const { return end - begin; }
};
Extent extent_of(const Timeline& timeline);

}  // namespace espalier::compare
