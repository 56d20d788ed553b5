#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/parse_units.h"
#include "base/suggest.h"
#include "planners/planner.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_reading.h"
#include "topology/names/group.h"
#include "topology/yaml/read_codes.h"

namespace espalier::scenario {

std::vector<Value> ScenarioContext::list(const Fields& fields, std::string_view key) {
  const Value value = fields.find(key);
  std::vector<Value> items;
  if (!value) return items;
  if (!value.is_list()) {
    error(value.mark(), read_codes::wrong_type, fmt::format("'{}' must be a list, not {}", key, describe(value.kind())),
          "begin each entry with a dash");
    return items;
  }
  for (std::size_t i = 0; i < value.size(); ++i) items.push_back(value.item(i));
  return items;
}

std::optional<Bytes> read_size(ScenarioContext& context, const Fields& fields, std::string_view key) {
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const bool is_bare = !written->empty() && written->find_first_not_of("0123456789.") == std::string::npos;
  auto parsed = is_bare && *written != "0"
                    ? fail(ErrorCode::invalid_input, fmt::format("'{}' has no unit: '{}'", key, written->substr(0, 60)),
                           fmt::format("write '{0}: {1} B' or '{0}: {1} MiB'", key, written->substr(0, 20)))
                    : parse_size(*written);
  if (parsed && *written != "0" && written->find_first_of("bB") == std::string::npos) {
    parsed = fail(ErrorCode::invalid_input, fmt::format("'{}' needs a whole unit: '{}'", key, written->substr(0, 60)),
                  "write B, KiB, MiB, GiB, kB, MB or GB");
  }
  if (parsed) return *parsed;
  if (parsed.error().help.starts_with("write a size"))
    parsed.error().help = "write a size such as 64 KiB, 1 GiB or 25 MB";
  context.error(fields.mark_of(key), scenario_codes::bad_size, parsed.error());
  return std::nullopt;
}

std::optional<Bytes> read_chunk(ScenarioContext& context, const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return Bytes{};
  const auto chunk = read_size(context, fields, key);
  if (!chunk || chunk->count > 0) return chunk;
  context.error(fields.mark_of(key), scenario_codes::bad_size, fmt::format("'{}' is nothing", key),
                "write the largest chunk, such as 64 KiB, or leave it out");
  return std::nullopt;
}

std::optional<std::int64_t> read_factor(ScenarioContext& context, const Fields& fields, std::string_view key,
                                        std::int64_t low_ppm) {
  constexpr std::int64_t million = 1'000'000, most = 1'000 * million;
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const std::string_view number = *written;
  const std::size_t point = std::min(number.find('.'), number.size());
  std::string digits(number.substr(0, point));
  const std::string_view decimals = number.substr(std::min(point + 1, number.size()));
  std::int64_t value = -1;
  if (!digits.empty() && digits.size() <= 4 && decimals.size() <= 6 && !number.ends_with('.')) {
    digits += decimals;
    digits.append(6 - decimals.size(), '0');
    const char* const end = digits.data() + digits.size();
    const auto [parsed, failed] = std::from_chars(digits.data(), end, value);
    if (failed != std::errc() || parsed != end || digits.front() == '-') value = -1;
  }
  if (value >= low_ppm && value <= most) return value;
  context.error(fields.mark_of(key), scenario_codes::bad_factor,
                fmt::format("'{}' is not a number from {} to 1000: '{}'", key,
                            static_cast<double>(low_ppm) / static_cast<double>(million), number.substr(0, 60)),
                "write a factor with at most six decimals, such as 1.5");
  return std::nullopt;
}

std::optional<std::int32_t> read_part(ScenarioContext& context, const Fields& fields, std::string_view key) {
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const auto parsed = parse_part(*written);
  if (parsed) return *parsed;
  context.error(fields.mark_of(key), scenario_codes::bad_factor, fmt::format("'{}': {}", key, parsed.error().message),
                parsed.error().help);
  return std::nullopt;
}

std::optional<FlopRate> read_flop_rate(ScenarioContext& context, const Fields& fields, std::string_view key) {
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const auto parsed = parse_flop_rate(*written);
  if (parsed) return *parsed;
  context.error(fields.mark_of(key), scenario_codes::bad_rate, parsed.error());
  return std::nullopt;
}

std::optional<ElementType> read_type(ScenarioContext& context, const Fields& fields, std::string_view key) {
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const auto parsed = parse_element_type(*written);
  if (parsed) return *parsed;
  context.error(fields.mark_of(key), scenario_codes::unknown_name, parsed.error());
  return std::nullopt;
}

std::optional<std::string> read_algorithm(ScenarioContext& context, const Fields& fields, std::string_view key) {
  if (!fields.has(key)) return std::string();
  auto written = fields.text(key);
  if (!written) return std::nullopt;
  std::vector<std::string_view> names{"auto"};
  for (const planners::Planner& planner : planners::all_planners()) names.push_back(planner.name);
  if (std::ranges::find(names, *written) != names.end()) return written;
  context.error(fields.mark_of(key), scenario_codes::unknown_name,
                fmt::format("there is no algorithm '{}'", written->substr(0, 60)), suggest(*written, names));
  return std::nullopt;
}

bool leaves_folder(const std::string& written) {
  const std::filesystem::path path(written);
  return path.is_absolute() || written == "-" || std::ranges::find(path, std::filesystem::path("..")) != path.end();
}

std::optional<std::vector<Rank>> read_ranks(ScenarioContext& context, const Fields& fields, std::string_view key) {
  const Topology& topology = context.scenario.topology;
  std::vector<Rank> ranks;
  if (!fields.has(key)) {
    for (std::size_t i = 0; i < topology.rank_count(); ++i) ranks.emplace_back(i);
    return ranks;
  }
  const auto written = fields.text(key);
  if (!written) return std::nullopt;
  const auto nodes = find_rank_nodes(topology, *written);
  if (!nodes) {
    context.error(fields.mark_of(key), scenario_codes::bad_ranks, nodes.error());
    return std::nullopt;
  }
  for (const NodeId node : *nodes) {
    ranks.push_back(topology.rank_of(node));
    if (!ranks.back().is_none()) continue;
    context.error(fields.mark_of(key), scenario_codes::bad_ranks,
                  fmt::format("'{}' is no rank of {}", topology.node(node).id, topology.name()));
    return std::nullopt;
  }
  std::ranges::sort(ranks);
  return ranks;
}

}  // namespace espalier::scenario
