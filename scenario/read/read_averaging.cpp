#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "topology/yaml/read_codes.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t max_low_rank = 1 << 20;

/// The place of a written name among known ones.
std::optional<std::size_t> read_name(ScenarioContext& context, const Fields& fields, std::string_view key,
                                     std::span<const std::string_view> names, std::string_view what) {
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const auto at = std::ranges::find(names, *written);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  context.error(fields.mark_of(key), scenario_codes::unknown_name,
                fmt::format("there is no {} '{}'", what, written->substr(0, 60)), suggest(*written, names));
  return std::nullopt;
}

std::optional<Averaging> read_gossip(ScenarioContext& context, Value value) {
  constexpr std::array<std::string_view, 3> graphs = {"network", "ring", "exponential"};
  const Fields fields = context.fields(value, "'gossip'", scenario_keys::gossip);
  if (!fields.is_map()) return std::nullopt;
  Averaging averaging{.kind = AveragingKind::gossip};
  if (fields.has("accuracy") == fields.has("rounds")) {
    context.error(fields.mark(), scenario_codes::bad_averaging, "gossip ends by 'accuracy' or by 'rounds', one of them",
                  "write 'accuracy: 0.001' for the part of the distance to the mean that may be left, or 'rounds: 1'");
    return std::nullopt;
  }
  if (fields.has("graph")) {
    const auto graph = read_name(context, fields, "graph", graphs, "graph");
    if (!graph) return std::nullopt;
    averaging.graph = static_cast<MixingGraph>(*graph);
  }
  if (fields.has("rounds")) {
    const auto rounds = fields.integer("rounds", 1, max_gossip_rounds);
    if (!rounds) return std::nullopt;
    averaging.rounds = *rounds;
    return averaging;
  }
  const auto accuracy = read_part(context, fields, "accuracy");
  if (!accuracy) return std::nullopt;
  if (*accuracy == 0 || *accuracy == 1'000'000) {
    context.error(fields.mark_of("accuracy"), scenario_codes::bad_averaging,
                  "'accuracy' is a part of the distance to the mean, above 0 and below 1", "write 0.001 or 0.1%");
    return std::nullopt;
  }
  averaging.accuracy_ppm = *accuracy;
  return averaging;
}

std::optional<Averaging> read_compression(ScenarioContext& context, const Fields& fields) {
  constexpr std::array<std::string_view, 1> names = {"int8"};
  const Value value = fields.find("compression");
  if (value.is_scalar()) {
    const auto name = read_name(context, fields, "compression", names, "compression");
    if (!name) return std::nullopt;
    return Averaging{.kind = AveragingKind::int8};
  }
  const Fields map = context.fields(value, "'compression'", scenario_keys::compression);
  if (!map.is_map()) return std::nullopt;
  if (!map.has("low_rank")) {
    map.missing("low_rank", "such as 'compression: {low_rank: 4}', or write 'compression: int8'");
    return std::nullopt;
  }
  const auto rank = map.integer("low_rank", 1, max_low_rank);
  if (!rank) return std::nullopt;
  return Averaging{.kind = AveragingKind::low_rank, .low_rank = *rank};
}

}  // namespace

std::optional<Averaging> read_averaging(ScenarioContext& context, const Fields& fields) {
  const bool gossips = fields.has("gossip"), compresses = fields.has("compression");
  if (!gossips && !compresses) return Averaging();
  if (gossips && compresses) {
    context.error(fields.mark_of("compression"), read_codes::keys_conflict, "'compression' does not go with 'gossip'",
                  "give one of them");
    return std::nullopt;
  }
  const auto averaging = gossips ? read_gossip(context, fields.find("gossip")) : read_compression(context, fields);
  return averaging && context.options.averages_plainly ? Averaging() : averaging;
}

}  // namespace espalier::scenario
