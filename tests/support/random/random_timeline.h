#pragma once

#include <algorithm>
#include <tuple>

#include "base/random.h"
#include "schedule/timeline/timeline.h"

namespace espalier::test {

/// A timeline of spans that overlap in every way, in begin order, with names that need care in JSON.
inline Timeline random_timeline(Random& random) {
  Timeline timeline;
  timeline.title = "all_reduce \"ring\" \\ 1 \xC2\xB5s\n";
  timeline.origin = "run";
  for (std::uint64_t i = 1 + random.below(4); i > 0; --i) timeline.rank_names.push_back("gpu\t" + std::to_string(i));
  for (std::uint64_t i = 1 + random.below(4); i > 0; --i) timeline.link_names.push_back("a>b#" + std::to_string(i));
  for (std::uint64_t i = random.below(60); i > 0; --i) {
    Span span;
    span.phase = static_cast<Phase>(random.below(4));
    span.lane = static_cast<std::uint32_t>(
        random.below(span.phase == Phase::wire ? timeline.link_names.size() : timeline.rank_names.size()));
    span.transfer = TransferId(random.next() >> (32 + random.below(32)));
    span.chunk = static_cast<std::uint32_t>(random.next() >> (32 + random.below(32)));
    span.begin = {random.between(-1000, 1'000'000'000) * (random.below(9) == 0 ? 1'000'000'000 : 1)};
    span.end = {span.begin.count + static_cast<std::int64_t>(random.next() >> (8 + random.below(56)))};
    timeline.spans.push_back(span);
  }
  std::ranges::sort(timeline.spans, [](const Span& a, const Span& b) {
    return std::tie(a.begin, a.lane, a.phase, a.transfer, a.chunk, a.end) <
           std::tie(b.begin, b.lane, b.phase, b.transfer, b.chunk, b.end);
  });
  return timeline;
}

}  // namespace espalier::test
