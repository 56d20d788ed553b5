#include "forecast/size_curve.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace espalier::forecast {
namespace {

/// How far a size is from one to its double, of two whole numbers.
struct Part {
  std::int64_t done = 0;
  std::int64_t whole = 1;

  /// Straight between both, and never falling where they do not.
  [[nodiscard]] std::int64_t between(std::int64_t from, std::int64_t to) const {
    return from + static_cast<std::int64_t>(static_cast<__int128>(to - from) * done / whole);
  }
};

/// A run between two that are cut into as many chunks.
sim::Report report_between(const sim::Report& from, const sim::Report& to, Bytes size, const Part& part) {
  sim::Report report;
  report.size = size;
  report.element_size = to.element_size;
  const std::int64_t chunk = part.between(from.chunk.count, to.chunk.count);
  report.chunk.count = (chunk + to.element_size - 1) / to.element_size * to.element_size;
  report.ahead = to.ahead;
  report.elapsed.count = part.between(from.elapsed.count, to.elapsed.count);
  report.events = static_cast<std::uint64_t>(
      part.between(static_cast<std::int64_t>(from.events), static_cast<std::int64_t>(to.events)));
  for (std::size_t i = 0; i < std::min(from.links.size(), to.links.size()); ++i) {
    report.links.push_back({part.between(from.links[i].bytes, to.links[i].bytes),
                            {part.between(from.links[i].busy.count, to.links[i].busy.count)}});
  }
  return report;
}

/// The same run, over no earlier than that.
std::shared_ptr<const SizedRun> no_earlier(SizedRun run, Picoseconds time) {
  run.report.elapsed = std::max(run.report.elapsed, time);
  return std::make_shared<const SizedRun>(std::move(run));
}

}  // namespace

bool is_for_curves(const planners::ChunkModel& chunks, Bytes size) {
  constexpr double max_hops = 100'000;  // A hundredth of a second.
  return chunks.chunk_hops(size, size) <= max_hops;
}

Result<SizeCurve::Known> SizeCurve::find(Bytes size) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = found_.find(size.count); known != found_.end()) return known->second;
  }
  auto run = search_(size);
  if (!run) return tl::unexpected(run.error());
  const std::scoped_lock lock(mutex_);
  return found_.try_emplace(size.count, std::make_shared<const SizedRun>(*std::move(run))).first->second;
}

Result<std::shared_ptr<const SizeCurve::Span>> SizeCurve::find_span(Bytes below) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = spans_.find(below.count); known != spans_.end()) return known->second;
  }
  auto span = make_span(below);
  if (!span) return tl::unexpected(span.error());
  const std::scoped_lock lock(mutex_);
  return spans_.try_emplace(below.count, std::make_shared<const Span>(*std::move(span))).first->second;
}

Result<SizeCurve::Span> SizeCurve::make_span(Bytes below) {
  const Bytes above{2 * below.count};
  const auto low = find(below);
  const auto high = low ? find(above) : low;
  if (!high) return tl::unexpected(high.error());
  const SizedRun &at_low = **low, &at_high = **high;
  Span span;
  const auto add = [&](Known from, const Known& to) {  // No line falls, whatever was found.
    span.lines.push_back({from, no_earlier(*to, from->report.elapsed)});
  };
  const auto run_as = [&](const SizedRun& like, Bytes size, std::int64_t chunk) {
    return repeat_(like, size, Pacing{{chunk}, like.report.ahead});
  };
  const bool are_alike = 2 * at_low.report.chunk.count == at_high.report.chunk.count &&
                         at_low.report.ahead == at_high.report.ahead && at_low.setting == at_high.setting;
  if (!are_alike) {
    if (auto as_low = run_as(at_low, above, 2 * at_low.report.chunk.count)) {
      add(*low, no_earlier({*std::move(as_low), at_low.setting, at_low.protocol}, at_high.report.elapsed));
    }
    const std::int64_t half = std::max(at_high.report.chunk.count / 2, at_high.report.element_size);
    if (auto as_high = run_as(at_high, below, half)) {
      add(no_earlier({*std::move(as_high), at_high.setting, at_high.protocol}, at_low.report.elapsed), *high);
    }
  }
  if (span.lines.empty()) add(*low, *high);
  return span;
}

Result<SizedRun> SizeCurve::at(Bytes size) {
  constexpr std::int64_t max_size = std::int64_t{1} << 61;
  const auto bytes = static_cast<std::uint64_t>(size.count);
  if (size.count < 1 || size.count >= max_size) return search_(size);
  if (std::has_single_bit(bytes)) {
    const auto found = find(size);
    return found ? Result<SizedRun>(**found) : tl::unexpected(found.error());
  }
  const Bytes below{static_cast<std::int64_t>(std::bit_floor(bytes))};
  const auto span = find_span(below);
  if (!span) return search_(size);
  const Part part{(size - below).count, below.count};
  const auto time = [&](const Line& line) {
    return part.between(line.from->report.elapsed.count, line.to->report.elapsed.count);
  };
  const Line& line = *std::ranges::min_element((*span)->lines, {}, time);
  if (size.count % line.to->report.element_size != 0) return search_(size);
  return SizedRun{report_between(line.from->report, line.to->report, size, part), line.to->setting, line.to->protocol};
}

}  // namespace espalier::forecast
