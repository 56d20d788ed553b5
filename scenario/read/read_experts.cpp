#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "base/suggest.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "scenario/workload/expert_routing.h"
#include "scenario/workload/training.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t max_experts = 65'536;
constexpr std::size_t max_matrix_bytes = std::size_t{512} << 20U;

/// The matrix of a file in the scenario's folder.
bool read_matrix(ScenarioContext& context, const Fields& fields, ExpertRouting& routing) {
  const auto name = fields.text("matrix");
  if (!name) return !fields.has("matrix");
  const auto refuse = [&](const Error& error) {
    context.error(fields.mark_of("matrix"), scenario_codes::bad_experts, error);
    return false;
  };
  if (!context.folder || name->empty() || leaves_folder(*name)) {
    return refuse({ErrorCode::invalid_input, "a matrix lies in the scenario's folder or below it",
                   "write 'matrix: traffic.csv' for a file beside the scenario"});
  }
  std::error_code status;
  const std::filesystem::path path = *context.folder / *name;
  if (!std::filesystem::is_regular_file(path, status)) {
    return refuse(
        {ErrorCode::unavailable, fmt::format("there is no file '{}' beside the scenario", name->substr(0, 60)), {}});
  }
  if (std::filesystem::file_size(path, status) > max_matrix_bytes) {
    return refuse({ErrorCode::too_large, fmt::format("{} has more than 512 MiB", *name), {}});
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (!stream.good() && !stream.eof()) return refuse({ErrorCode::unavailable, "cannot read " + *name, {}});
  auto matrix = parse_traffic(text, *name);
  if (!matrix) return refuse(matrix.error());
  routing.matrix = std::make_shared<const TrafficMatrix>(*std::move(matrix));
  return true;
}

bool read_skew(ScenarioContext& context, const Fields& fields, ExpertRouting& routing) {
  const auto skew = fields.text("skew");
  if (!skew) return !fields.has("skew");
  if (const auto parsed = parse_skew(*skew, routing); !parsed) {
    context.error(fields.mark_of("skew"), scenario_codes::bad_experts, parsed.error());
    return false;
  }
  return true;
}

/// One of a few words; nothing where it is another.
template <std::size_t N>
std::optional<std::size_t> read_choice(ScenarioContext& context, const Fields& fields, std::string_view key,
                                       const std::array<std::string_view, N>& names) {
  const auto written = fields.text(key);
  if (!written) return fields.has(key) ? std::nullopt : std::optional<std::size_t>(0);
  const auto at = std::ranges::find(names, *written);
  if (at != names.end()) return static_cast<std::size_t>(at - names.begin());
  context.error(fields.mark_of(key), scenario_codes::bad_experts,
                fmt::format("'{}' is '{}'", key, written->substr(0, 60)), suggest(*written, names));
  return std::nullopt;
}

bool read_format(ScenarioContext& context, const Fields& fields, std::string_view key,
                 std::optional<experts::Format>& place) {
  const auto written = fields.text(key);
  if (!written) return !fields.has(key);
  const auto format = experts::parse_format(*written);
  if (!format) {
    context.error(fields.mark_of(key), scenario_codes::bad_experts, format.error());
    return false;
  }
  place = *format;
  return true;
}

/// What makes a difference of popularity, where all experts are alike.
bool has_use(ScenarioContext& context, const Fields& fields, const ExpertRouting& routing) {
  const bool has_law = routing.matrix == nullptr && routing.exponent > 0;
  for (const std::string_view key : {"changes", "layers", "placement"}) {
    if (!fields.has(key) || has_law) continue;
    context.error(fields.mark_of(key), scenario_codes::bad_experts,
                  fmt::format("'{}' makes no difference: {}", key,
                              routing.matrix ? "a matrix says nothing of single experts" : "experts are alike"),
                  "write 'skew: zipf:0.7', or leave it out");
    return false;
  }
  if (routing.matrix == nullptr && routing.exponent == 0 && routing.capacity >= 1) {
    context.error(fields.mark_of("capacity"), scenario_codes::bad_experts,
                  "'capacity' makes no difference: no expert gets more than the mean",
                  "write 'skew: zipf:0.7', or leave it out");
    return false;
  }
  if (fields.has("matrix") && fields.has("skew")) {
    context.error(fields.mark_of("matrix"), scenario_codes::bad_experts, "there are 'skew' and 'matrix'",
                  "give one of them");
    return false;
  }
  if (fields.has("matrix") && routing.is_deduplicated) {
    context.error(fields.mark_of("dispatch"), scenario_codes::bad_experts,
                  "a matrix says what each rank sends: it cannot be deduplicated again", "write direct or balanced");
    return false;
  }
  return true;
}

bool read_routing(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  ExpertRouting routing;
  constexpr std::array<std::string_view, 4> ways = {"usual", "direct", "balanced", "deduplicated"};
  constexpr std::array<std::string_view, 3> planners = {"flat", "balanced", "balanced"};
  constexpr std::array<std::string_view, 2> layers = {"different", "same"};
  constexpr std::array<std::string_view, 2> placements = {"given", "searched"};
  bool is_fine = read_skew(context, fields, routing) && read_matrix(context, fields, routing);
  const auto way = read_choice(context, fields, "dispatch", ways);
  const auto layer = read_choice(context, fields, "layers", layers);
  const auto placement = read_choice(context, fields, "placement", placements);
  is_fine = is_fine && way && layer && placement;
  is_fine = read_format(context, fields, "precision", routing.dispatch) && is_fine;
  is_fine = read_format(context, fields, "combine", routing.combine) && is_fine;
  const auto changes = fields.integer("changes", 1, 1'000);
  const auto capacity = read_factor(context, fields, "capacity", 1'000);
  is_fine = is_fine && (changes || !fields.has("changes")) && (capacity || !fields.has("capacity"));
  if (!is_fine) return false;
  routing.is_deduplicated = *way == 3;
  routing.do_layers_differ = *layer == 0;
  routing.is_placed = *placement == 1;
  routing.changes = changes.value_or(0);
  routing.capacity = static_cast<double>(capacity.value_or(0)) * 1e-6;
  if (!has_use(context, fields, routing)) return false;
  if (context.options.routes == Routes::balanced) {
    routing.exponent = 0;
    routing.matrix = nullptr;
    routing.is_placed = false;
  }
  if (context.options.routes == Routes::placed) routing.is_placed = true;
  if (*way > 0) model.dispatch_planner = planners[*way - 1];
  model.routing = std::move(routing);
  return true;
}

}  // namespace

bool read_experts(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  const Value value = fields.find("experts");
  if (!value) return true;
  if (!value.is_map()) {
    const auto count = fields.integer("experts", 1, max_experts);
    if (count) model.experts = *count;
    return count.has_value();
  }
  const Fields experts = context.fields(value, "'experts'", scenario_keys::experts);
  const auto count = experts.integer("count", 1, max_experts);
  if (count) model.experts = *count;
  if (!count && experts.has("count")) return false;
  if (model.experts == 0) {
    experts.missing("count", "how many experts a layer has, such as 'count: 64'");
    return false;
  }
  return read_routing(context, experts, model);
}

}  // namespace espalier::scenario
