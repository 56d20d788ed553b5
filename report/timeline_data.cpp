#include "report/timeline_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format_units.h"
#include "report/html_text.h"
#include "report/span_columns.h"
#include "schedule/timeline/thin_timeline.h"

namespace espalier::report {
namespace {

/// Longer critical paths than anybody looks at are cut off.
constexpr std::size_t max_path_steps = 20'000;

Picoseconds end_of(const Timeline& timeline) {
  Picoseconds end;
  for (const Span& span : timeline.spans) end = std::max(end, span.end);
  return end;
}

/// Adds the time from begin to end to the slices that it lies in, in parts of a slice.
void add_to_slices(std::vector<double>& loads, std::size_t links, std::size_t link, double begin, double end) {
  for (auto slice = static_cast<std::size_t>(begin); slice < load_slices && static_cast<double>(slice) < end; ++slice) {
    const auto first = static_cast<double>(slice);
    loads[slice * links + link] += std::min(end, first + 1) - std::max(begin, first);
  }
}

std::string load_bytes(const Timeline& timeline, std::size_t link_count) {
  std::string bytes;
  for (const double load : loads_over_time(timeline, link_count)) {
    bytes += static_cast<char>(static_cast<unsigned char>(100 * load + 0.5));
  }
  return bytes;
}

/// Names, spans and path.
void add_timeline_to(nlohmann::ordered_json& data, const DrawnTimeline& drawn) {
  Timeline timeline = *drawn.timeline;
  const Picoseconds end = end_of(timeline);
  data["ranks"] = timeline.rank_names;
  data["links"] = timeline.link_names;
  data["all"] = timeline.spans.size();
  std::uint32_t every = 1;
  while (timeline.spans.size() > max_page_spans) thin_timeline(timeline, every *= 2);
  data["every"] = every;
  std::vector<PageSpan> spans;
  spans.reserve(timeline.spans.size());
  for (const Span& span : timeline.spans) {
    spans.push_back({span.begin, span.end, span.lane, static_cast<std::uint32_t>(span.phase),
                     static_cast<std::uint32_t>(span.transfer.index()), span.chunk});
  }
  add_span_columns(data, spans, end);
  const auto unit = data["unit"].get<std::int64_t>();
  nlohmann::ordered_json path = nlohmann::ordered_json::array();
  for (const PathStep& step : drawn.path) {
    if (path.size() == max_path_steps) break;
    const auto lane = static_cast<std::int64_t>(step.lane);
    path.push_back({step.begin.count / unit, step.end.count / unit, step.is_on_link ? lane : -1,
                    step.is_on_link ? -1 : lane, step.transfer.index(), step.chunk});
  }
  data["path"] = std::move(path);
}

}  // namespace

DrawnTimeline drawn_timeline(const CloseRun& run, const Topology& topology) {
  DrawnTimeline drawn{
      fmt::format("{} of {}, {}", run.algorithm, size_text(run.report.size), format_duration(run.report.elapsed)),
      &*run.report.timeline,
      {}};
  for (const sim::CriticalStep& step : run.report.critical_path) {
    const bool is_on_link = !step.link.is_none();
    if (!is_on_link && !topology.node(step.node).is_rank) continue;
    const std::size_t lane = is_on_link ? step.link.index() : topology.rank_of(step.node).index();
    drawn.path.push_back(
        {step.begin, step.end, is_on_link, static_cast<std::uint32_t>(lane), step.transfer, step.chunk});
  }
  return drawn;
}

std::vector<double> loads_over_time(const Timeline& timeline, std::size_t link_count) {
  std::vector<double> loads(load_slices * link_count, 0);
  const Picoseconds end = end_of(timeline);
  if (end.count == 0) return loads;
  const double per_slice = static_cast<double>(end.count) / static_cast<double>(load_slices);
  std::vector<double> until(link_count, 0);  // where flows share a link their spans overlap: each moment counts once
  for (const Span& span : timeline.spans) {
    if (span.phase != Phase::wire) continue;
    const double begin = std::max(static_cast<double>(span.begin.count) / per_slice, until[span.lane]);
    const double stop = static_cast<double>(span.end.count) / per_slice;
    add_to_slices(loads, link_count, span.lane, begin, stop);
    until[span.lane] = std::max(until[span.lane], stop);
  }
  for (double& load : loads) load = std::clamp(load, 0.0, 1.0);
  return loads;
}

std::string timeline_data(const CloseRun& run, const Topology& topology) {
  nlohmann::ordered_json data;
  add_timeline_to(data, drawn_timeline(run, topology));
  data["slices"] = load_slices;
  data["loads"] = base64(load_bytes(*run.report.timeline, topology.link_count()));
  nlohmann::ordered_json busy = nlohmann::ordered_json::array();
  for (const sim::LinkUse& use : run.report.links) {
    const auto elapsed = static_cast<double>(std::max<std::int64_t>(1, run.report.elapsed.count));
    busy.push_back(static_cast<int>(100 * std::min(1.0, static_cast<double>(use.busy.count) / elapsed) + 0.5));
  }
  data["busy"] = std::move(busy);
  return in_script(data);
}

std::string timeline_data(const DrawnTimeline& drawn) {
  nlohmann::ordered_json data;
  add_timeline_to(data, drawn);
  return in_script(data);
}

}  // namespace espalier::report
