#include "schedule/timeline/thin_timeline.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>

namespace espalier {
namespace {

constexpr std::string_view mark = ", 1 chunk in ";

}  // namespace

void thin_timeline(Timeline& timeline, std::uint32_t every) {
  if (every == thinning_of(timeline)) return;
  std::erase_if(timeline.spans,
                [&](const Span& span) { return (std::uint64_t{span.transfer.value()} + span.chunk) % every != 0; });
  timeline.origin = timeline.origin.substr(0, timeline.origin.find(mark)) + std::string(mark) + std::to_string(every);
}

std::uint32_t thinning_of(const Timeline& timeline) {
  const std::size_t at = timeline.origin.find(mark);
  if (at == std::string::npos) return 1;
  const char* const end = timeline.origin.data() + timeline.origin.size();
  std::uint32_t every = 1;
  const auto [last, status] = std::from_chars(timeline.origin.data() + at + mark.size(), end, every);
  return status == std::errc() && last == end && every > 0 ? every : 1;
}

std::uint32_t thin_alike(Timeline& a, Timeline& b) {
  const std::uint64_t every = std::lcm(std::uint64_t{thinning_of(a)}, std::uint64_t{thinning_of(b)});
  const auto both =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(every, std::numeric_limits<std::uint32_t>::max()));
  thin_timeline(a, both);
  thin_timeline(b, both);
  return both;
}

std::uint64_t chrome_trace_bytes(const Timeline& timeline) {
  constexpr std::uint64_t per_span = 150;  // of simulations and runs of 8 to 256 ranks: 140 to 160, without arrows
  return timeline.spans.size() * per_span;
}

}  // namespace espalier
