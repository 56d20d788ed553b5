#include "compare/compare_timelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <unordered_map>

#include "compare/path_by_rank.h"
#include "compare/timeline_lanes.h"
#include "schedule/timeline/thin_timeline.h"

namespace espalier::compare {
namespace {

constexpr std::array phases = {Phase::send, Phase::wire, Phase::recv, Phase::reduce};

bool has_wire(const Timeline& timeline) {
  return std::ranges::any_of(timeline.spans, [](const Span& span) { return span.phase == Phase::wire; });
}

double as_error(const Span& a, const Span& b) { return Duration{a.end - a.begin, b.end - b.begin}.error(); }

struct Sides {
  const Timeline& a;
  const Timeline& b;
  Extent extent_a;
  Extent extent_b;
};

PhaseComparison compare_phase(const Sides& sides, const Pairing& pairing, Phase phase) {
  PhaseComparison result{.phase = phase};
  std::vector<double> errors;
  std::vector<std::int64_t> lags;
  for (const SpanPair& pair : pairing.pairs) {
    const Span& a = sides.a.spans[pair.a];
    const Span& b = sides.b.spans[pair.b];
    if (a.phase != phase) continue;
    ++result.pairs;
    result.total.a = result.total.a + (a.end - a.begin);
    result.total.b = result.total.b + (b.end - b.begin);
    errors.push_back(as_error(a, b));
    lags.push_back(((b.begin - sides.extent_b.begin) - (a.begin - sides.extent_a.begin)).count);
  }
  for (const std::uint32_t index : pairing.only_a) result.only_a += sides.a.spans[index].phase == phase ? 1U : 0U;
  for (const std::uint32_t index : pairing.only_b) result.only_b += sides.b.spans[index].phase == phase ? 1U : 0U;
  result.durations = summarize_errors(errors);
  if (!lags.empty()) {
    const auto middle = lags.begin() + static_cast<std::ptrdiff_t>(lags.size() / 2);
    std::ranges::nth_element(lags, middle);
    result.begin_lag = {*middle};
  }
  return result;
}

std::vector<LinkComparison> compare_links(const Sides& sides, bool by_way) {
  const auto lanes_a = by_way ? ways_on_links(sides.a, has_wire(sides.a) ? sides.a : sides.b) : wires_on_links(sides.a);
  const auto lanes_b = by_way ? ways_on_links(sides.b, has_wire(sides.a) ? sides.a : sides.b) : wires_on_links(sides.b);
  std::vector<LinkComparison> links;
  for (std::size_t i = 0; i < sides.a.link_names.size(); ++i) {
    if (lanes_a[i].empty() && lanes_b[i].empty()) continue;
    links.push_back({sides.a.link_names[i], lanes_a[i].size(), {busy_time(lanes_a[i]), busy_time(lanes_b[i])}});
  }
  std::ranges::stable_sort(links, [](const LinkComparison& x, const LinkComparison& y) {
    return std::abs((x.busy.a - x.busy.b).count) > std::abs((y.busy.a - y.busy.b).count);
  });
  return links;
}

/// By the lanes of an aligned timeline, whose lanes are paired by name or else by number.
std::vector<Picoseconds> on_lanes(const std::vector<std::string>& aligned, const std::vector<std::string>& names,
                                  const std::vector<Picoseconds>& times) {
  std::vector<Picoseconds> found(aligned.size());
  for (std::size_t lane = 0; lane < aligned.size(); ++lane) {
    const auto name = std::ranges::find(names, aligned[lane]);
    const std::size_t own = name == names.end() ? lane : static_cast<std::size_t>(name - names.begin());
    if (own < times.size()) found[lane] = times[own];
  }
  return found;
}

/// Sets `culprit`: whom the path of b waits for longer than that of a, and clearly longer than for any other.
void find_culprit(const Extent& extent_b, TimelineComparison& result) {
  std::optional<std::size_t> most;
  std::int64_t second = 0;
  const auto excess = [&](std::size_t rank) {
    return (result.ranks[rank].on_path.b - result.ranks[rank].on_path.a).count;
  };
  for (std::size_t i = 0; i < result.ranks.size(); ++i) {
    if (most && excess(i) <= excess(*most)) {
      second = std::max(second, excess(i));
      continue;
    }
    if (most) second = std::max(second, excess(*most));
    most = i;
  }
  constexpr std::int64_t parts_of_whole = 20;
  constexpr double clearly = 1.25;
  if (!most || result.ranks.size() < 2) return;
  const bool is_much = excess(*most) > extent_b.length().count / parts_of_whole;
  if (is_much && static_cast<double>(excess(*most)) > clearly * static_cast<double>(second)) result.culprit = most;
}

/// What a rank did in one timeline, from its start.
struct RankSide {
  Picoseconds start, finish, busy;
};

std::vector<std::optional<RankSide>> rank_sides(const Timeline& timeline, const Extent& extent) {
  const std::vector<Intervals> lanes = spans_on_ranks(timeline);
  std::vector<std::optional<RankSide>> sides(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].empty()) continue;
    RankSide side{lanes[i].front().begin, lanes[i].front().end, busy_time(lanes[i])};
    for (const Interval& interval : lanes[i]) {
      side.start = std::min(side.start, interval.begin);
      side.finish = std::max(side.finish, interval.end);
    }
    side.start = side.start - extent.begin;
    side.finish = side.finish - extent.begin;
    sides[i] = side;
  }
  return sides;
}

void compare_ranks(const Sides& sides, const std::vector<Picoseconds>& path_a, const std::vector<Picoseconds>& path_b,
                   TimelineComparison& result) {
  const auto left = rank_sides(sides.a, sides.extent_a);
  const auto right = rank_sides(sides.b, sides.extent_b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!left[i] && !right[i]) continue;
    const RankSide a = left[i].value_or(RankSide{});
    const RankSide b = right[i].value_or(RankSide{});
    result.ranks.push_back({sides.a.rank_names[i],
                            {a.start, b.start},
                            {a.finish, b.finish},
                            {a.busy, b.busy},
                            {a.finish - a.busy, b.finish - b.busy},
                            {path_a[i], path_b[i]}});
    if (!left[i] || !right[i]) continue;
    const auto lag = [&](std::size_t rank) { return result.ranks[rank].finish.b - result.ranks[rank].finish.a; };
    const std::size_t own = result.ranks.size() - 1;
    if (!result.laggard || lag(own) > lag(*result.laggard)) result.laggard = own;
  }
  find_culprit(sides.extent_b, result);
}

/// From where to where these transfers go, by the lanes of their spans.
std::unordered_map<TransferId, std::string> ways_of(const Timeline& timeline, const std::set<TransferId>& transfers) {
  std::unordered_map<TransferId, std::pair<std::string, std::string>> ends;
  for (const Span& span : timeline.spans) {
    if (span.phase == Phase::wire || !transfers.contains(span.transfer)) continue;
    auto& [src, dst] = ends[span.transfer];
    (span.phase == Phase::send ? src : dst) = timeline.rank_names[span.lane];
  }
  std::unordered_map<TransferId, std::string> ways;
  for (const auto& [transfer, names] : ends) {
    ways[transfer] =
        fmt::format("{}>{}", names.first.empty() ? "?" : names.first, names.second.empty() ? "?" : names.second);
  }
  return ways;
}

std::string way_of(const std::unordered_map<TransferId, std::string>& ways, TransferId transfer) {
  const auto found = ways.find(transfer);
  return found == ways.end() ? "?>?" : found->second;
}

TransferComparison compare_transfers(const Sides& sides, const Pairing& pairing) {
  TransferComparison result;
  std::vector<double> errors;
  // Pairs are sorted by transfer.
  for (std::size_t i = 0; i < pairing.pairs.size();) {
    const TransferId transfer = sides.a.spans[pairing.pairs[i].a].transfer;
    Extent a{sides.a.spans[pairing.pairs[i].a].begin, sides.a.spans[pairing.pairs[i].a].end};
    Extent b{sides.b.spans[pairing.pairs[i].b].begin, sides.b.spans[pairing.pairs[i].b].end};
    for (; i < pairing.pairs.size() && sides.a.spans[pairing.pairs[i].a].transfer == transfer; ++i) {
      const Span& span_a = sides.a.spans[pairing.pairs[i].a];
      const Span& span_b = sides.b.spans[pairing.pairs[i].b];
      a = {std::min(a.begin, span_a.begin), std::max(a.end, span_a.end)};
      b = {std::min(b.begin, span_b.begin), std::max(b.end, span_b.end)};
    }
    const Duration duration{a.length(), b.length()};
    errors.push_back(duration.error());
    if (!result.worst.is_none() && std::abs(errors.back()) <= std::abs(result.worst_duration.error())) continue;
    result.worst = transfer;
    result.worst_duration = duration;
  }
  result.errors = summarize_errors(errors);
  if (!result.worst.is_none()) result.worst_way = way_of(ways_of(sides.a, {result.worst}), result.worst);
  return result;
}

std::vector<PathTransfer> path_of(const Timeline& timeline, const Extent& extent, const KnownSchedule& known) {
  const std::vector<ChainStep> chain = find_critical_chain(timeline, known);
  std::set<TransferId> on_path;
  for (const ChainStep& step : chain) on_path.insert(timeline.spans[step.span].transfer);
  const auto ways = ways_of(timeline, on_path);
  std::vector<PathTransfer> path;
  for (const ChainStep& step : chain) {
    const TransferId transfer = timeline.spans[step.span].transfer;
    const Picoseconds until = step.until - extent.begin;
    if (!path.empty() && path.back().transfer == transfer) {
      path.back().until = until;
      path.back().waited = path.back().waited + step.waited;
      continue;
    }
    path.push_back({transfer, way_of(ways, transfer), step.begin - extent.begin, until, step.waited});
  }
  return path;
}

PathComparison compare_paths(const Timeline& a, const Timeline& b, const KnownSchedule& known) {
  PathComparison result;
  result.a = path_of(a, extent_of(a), known);
  result.b = path_of(b, extent_of(b), known);
  while (result.common < result.a.size() && result.common < result.b.size() &&
         result.a[result.common].transfer == result.b[result.common].transfer) {
    ++result.common;
  }
  std::set<TransferId> on_a;
  for (const PathTransfer& step : result.a) on_a.insert(step.transfer);
  std::int64_t shared = 0;
  std::int64_t all = 0;
  for (const PathTransfer& step : result.b) {
    const std::int64_t time = (step.until - step.begin).count;
    all += time;
    if (on_a.contains(step.transfer)) shared += time;
  }
  result.shared = all > 0 ? static_cast<double>(shared) / static_cast<double>(all) : 1.0;
  return result;
}

}  // namespace

TimelineComparison compare_timelines(Timeline a, Timeline b, const KnownSchedule& known) {
  // Of the chunks as they were: merged transfers overlap, and would hide what waited for what.
  thin_alike(a, b);
  PathComparison path = compare_paths(a, b, known);
  const std::vector<Picoseconds> path_a = path_by_rank(a, known), path_b = path_by_rank(b, known);
  const std::vector<std::string> names_a = a.rank_names, names_b = b.rank_names;
  const AlignedTimelines aligned = align(std::move(a), std::move(b));
  const Sides sides{aligned.a, aligned.b, extent_of(aligned.a), extent_of(aligned.b)};
  const Pairing pairing = pair_spans(aligned.a, aligned.b);
  TimelineComparison result;
  result.notes = aligned.notes;
  result.by_transfer = aligned.by_transfer;
  result.total = {sides.extent_a.length(), sides.extent_b.length()};
  for (const Phase phase : phases) {
    PhaseComparison compared = compare_phase(sides, pairing, phase);
    if (compared.pairs + compared.only_a + compared.only_b > 0) result.phases.push_back(compared);
  }
  const bool wires_a = has_wire(aligned.a);
  const bool wires_b = has_wire(aligned.b);
  if (wires_a || wires_b) {
    result.links_by_way = !wires_a || !wires_b;
    result.links = compare_links(sides, result.links_by_way);
  }
  if (wires_a != wires_b) {
    result.notes.push_back(
        fmt::format("{} has no wire spans; links are compared from send to recv of the chunks that cross them",
                    wires_a ? "B" : "A"));
  }
  compare_ranks(sides, on_lanes(aligned.a.rank_names, names_a, path_a), on_lanes(aligned.b.rank_names, names_b, path_b),
                result);
  result.transfers = compare_transfers(sides, pairing);
  result.path = std::move(path);
  if (pairing.pairs.empty()) result.notes.emplace_back("no span of one timeline has a counterpart in the other");
  return result;
}

}  // namespace espalier::compare
