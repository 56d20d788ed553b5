#include <fmt/format.h>

#include <algorithm>

#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "topology/without.h"
#include "topology/yaml/read_codes.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t whole_part = 1'000'000;
constexpr std::size_t max_changes = 1'000'000;

std::optional<std::vector<LinkId>> read_links(ScenarioContext& context, const Fields& fields) {
  if (!fields.has("link")) fields.missing("link", "such as 'link: gpu0-gpu1', 'gpu0>gpu1' or a node");
  const auto written = fields.text("link");
  if (!written) return std::nullopt;
  const Topology& topology = context.scenario.topology;
  auto parts = find_parts(topology, *written);
  if (!parts) {
    context.error(fields.mark_of("link"), scenario_codes::unknown_link, parts.error());
    return std::nullopt;
  }
  for (const NodeId node : parts->nodes) {
    parts->links.insert(parts->links.end(), topology.out_links(node).begin(), topology.out_links(node).end());
    parts->links.insert(parts->links.end(), topology.in_links(node).begin(), topology.in_links(node).end());
  }
  std::ranges::sort(parts->links);
  parts->links.erase(std::unique(parts->links.begin(), parts->links.end()), parts->links.end());
  return std::move(parts->links);
}

/// What links have from when on: one change at `at`, or back and forth.
struct Changes {
  std::int64_t at = 0;
  std::int32_t rate_ppm = 0;
  std::optional<std::int64_t> duration;
  std::int64_t every = 0;
  std::int64_t times = 1;
};

std::optional<Changes> read_changes(ScenarioContext& context, const Fields& fields) {
  if (!fields.has("at")) fields.missing("at", "such as 'at: 3 ms'");
  const bool is_down = fields.boolean("down").value_or(false);
  if (fields.has("rate") == is_down) {
    context.error(fields.mark(), scenario_codes::bad_event, "an event has a 'rate', or says 'down: true'",
                  "write 'rate: 0.5' for half of the bandwidth, or 'down: true'");
    return std::nullopt;
  }
  const auto at = fields.duration("at");
  const auto rate = is_down ? std::optional<std::int32_t>(0) : fields.millionths("rate");
  if (!at || !rate) return std::nullopt;
  Changes changes{.at = at->count, .rate_ppm = *rate};
  if (const auto duration = fields.duration("for")) changes.duration = duration->count;
  changes.every = fields.duration("every").value_or(Picoseconds{}).count;
  changes.times = fields.integer("times", 1, whole_part).value_or(1);
  const bool repeats = fields.has("every") || fields.has("times");
  if (repeats && !(changes.duration && changes.every > *changes.duration && fields.has("times"))) {
    context.error(fields.mark(), scenario_codes::bad_event, "what repeats needs 'for', a longer 'every', and 'times'",
                  "such as 'for: 1 ms, every: 5 ms, times: 3'");
    return std::nullopt;
  }
  if (changes.duration && *changes.duration == 0) {
    context.error(fields.mark_of("for"), scenario_codes::bad_event, "an event lasts longer than nothing", "");
    return std::nullopt;
  }
  return changes;
}

}  // namespace

void read_background(ScenarioContext& context, const std::vector<Value>& list) {
  for (const Value& value : list) {
    const Fields fields = context.fields(value, "background traffic", scenario_keys::background);
    if (!fields.is_map()) continue;
    for (const std::string_view key : {"pairs", "size", "load"}) {
      if (!fields.has(key)) fields.missing(key, "such as '{pairs: 8, size: 1 MiB, load: 0.3}'");
    }
    const auto pairs = fields.integer("pairs", 1, 100'000);
    const auto size = read_size(context, fields, "size");
    const auto load = fields.millionths("load");
    auto ranks = read_ranks(context, fields, "ranks");
    if (!pairs || !size || !load || !ranks) continue;
    if (size->count == 0 || ranks->size() < 2) {
      context.error(fields.mark(), scenario_codes::bad_ranks, "background traffic needs bytes, and two ranks", "");
      continue;
    }
    context.scenario.disturbances.background.push_back(
        {.pairs = static_cast<std::uint32_t>(*pairs), .size = *size, .load_ppm = *load, .ranks = *std::move(ranks)});
  }
}

void read_stragglers(ScenarioContext& context, const std::vector<Value>& list) {
  for (const Value& value : list) {
    const Fields fields = context.fields(value, "a straggler", scenario_keys::straggler);
    if (!fields.is_map()) continue;
    if (!fields.has("ranks")) {
      fields.missing("ranks", "such as 'ranks: gpu3'");
      continue;
    }
    const auto ranks = read_ranks(context, fields, "ranks");
    const auto compute = fields.has("compute") ? read_factor(context, fields, "compute", 1) : whole_part;
    const auto start = fields.duration("start");
    if (!ranks || !compute) continue;
    for (const Rank rank : *ranks) {
      context.scenario.disturbances.stragglers.push_back(
          {.rank = rank, .compute_ppm = *compute, .start = start.value_or(Picoseconds{})});
    }
  }
}

void read_events(ScenarioContext& context, const std::vector<Value>& list) {
  auto& all = context.scenario.disturbances.conditions.changes;
  for (const Value& value : list) {
    const Fields fields = context.fields(value, "an event", scenario_keys::event);
    if (!fields.is_map()) continue;
    const auto links = read_links(context, fields);
    const auto changes = read_changes(context, fields);
    if (!links || !changes) continue;
    const std::int64_t times = changes->duration ? changes->times : 1;
    if (links->size() * static_cast<std::size_t>(times) * 2 + all.size() > max_changes) {
      context.error(fields.mark(), scenario_codes::too_many, fmt::format("more than {} changes of links", max_changes),
                    "lower 'times'");
      return;
    }
    const __int128 last = static_cast<__int128>(changes->every) * times + changes->at + changes->duration.value_or(0);
    if (last > sim::latest_entry) {
      context.error(fields.mark(), scenario_codes::bad_event, "the event is past 26 days of simulated time", "");
      continue;
    }
    for (const LinkId link : *links) {
      for (std::int64_t i = 0; i < times; ++i) {
        const std::int64_t at = changes->at + i * changes->every;
        all.push_back({.link = link, .at = {at}, .rate_ppm = changes->rate_ppm});
        if (changes->duration) all.push_back({.link = link, .at = {at + *changes->duration}});
      }
    }
  }
  std::ranges::stable_sort(all, {}, [](const sim::RateChange& change) { return std::pair(change.at, change.link); });
}

}  // namespace espalier::scenario
