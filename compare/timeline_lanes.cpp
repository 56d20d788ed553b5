#include "compare/timeline_lanes.h"

#include <algorithm>
#include <map>
#include <optional>

namespace espalier::compare {
namespace {

/// The links that each transfer crosses.
std::map<TransferId, std::vector<std::uint32_t>> links_of_transfers(const Timeline& wired) {
  std::map<TransferId, std::vector<std::uint32_t>> links;
  for (const Span& span : wired.spans) {
    if (span.phase == Phase::wire) links[span.transfer].push_back(span.lane);
  }
  for (auto& [transfer, lanes] : links) {
    std::ranges::sort(lanes);
    lanes.erase(std::unique(lanes.begin(), lanes.end()), lanes.end());
  }
  return links;
}

}  // namespace

std::vector<Intervals> wires_on_links(const Timeline& timeline) {
  std::vector<Intervals> lanes(timeline.link_names.size());
  for (const Span& span : timeline.spans) {
    if (span.phase == Phase::wire) lanes[span.lane].push_back({span.begin, span.end});
  }
  return lanes;
}

std::vector<Intervals> ways_on_links(const Timeline& timeline, const Timeline& wired) {
  struct Way {
    std::optional<Picoseconds> sent;
    std::optional<Picoseconds> received;
  };
  std::map<std::pair<TransferId, std::uint32_t>, Way> ways;
  for (const Span& span : timeline.spans) {
    Way& way = ways[{span.transfer, span.chunk}];
    if (span.phase == Phase::send) way.sent = std::min(way.sent.value_or(span.begin), span.begin);
    if (span.phase == Phase::recv) way.received = std::max(way.received.value_or(span.end), span.end);
  }
  const auto links = links_of_transfers(wired);
  std::vector<Intervals> lanes(timeline.link_names.size());
  for (const auto& [chunk, way] : ways) {
    if (!way.sent || !way.received) continue;
    const auto crossed = links.find(chunk.first);
    if (crossed == links.end()) continue;
    for (const std::uint32_t link : crossed->second) lanes[link].push_back({*way.sent, *way.received});
  }
  return lanes;
}

std::vector<Intervals> spans_on_ranks(const Timeline& timeline) {
  std::vector<Intervals> lanes(timeline.rank_names.size());
  for (const Span& span : timeline.spans) {
    if (span.phase != Phase::wire) lanes[span.lane].push_back({span.begin, span.end});
  }
  return lanes;
}

Picoseconds busy_time(Intervals intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  Picoseconds busy;
  std::optional<Picoseconds> until;
  for (const Interval& interval : intervals) {
    const Picoseconds begin = until ? std::max(interval.begin, *until) : interval.begin;
    if (interval.end > begin) busy = busy + (interval.end - begin);
    until = until ? std::max(*until, interval.end) : interval.end;
  }
  return busy;
}

}  // namespace espalier::compare
