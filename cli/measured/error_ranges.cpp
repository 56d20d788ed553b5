#include "cli/measured/error_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format_units.h"
#include "cli/flags/inputs.h"
#include "forecast/question.h"
#include "planners/graph/rank_groups.h"

namespace espalier::cli {
namespace {

constexpr double part_between = 0.9;

/// Only what NCCL itself picks, or one of its algorithms, was measured.
bool is_measured(const std::string& algorithm) { return forecast::is_nccl_algorithm(algorithm); }

std::string sizes_text(Bytes first, Bytes last) {
  return first == last ? "at " + format_size(first)
                       : fmt::format("from {} to {}", format_size(first), format_size(last));
}

std::string range_text(const forecast::ErrorRange& range) {
  if (range.of == nullptr) return range.outside;
  std::string text = fmt::format("{:.2f} to {:.2f} of it ({} points", range.of->low, range.of->high, range.of->points);
  if (!range.outside.empty()) text += "; " + range.outside;
  return text + ")";
}

}  // namespace

Result<std::shared_ptr<const forecast::MeasuredErrors>> shipped_errors() {
  std::ifstream file(shipped_file("profiles/errors.csv"));
  if (!file) return std::make_shared<const forecast::MeasuredErrors>();
  std::ostringstream text;
  text << file.rdbuf();
  auto errors = forecast::MeasuredErrors::read(text.str());
  if (!errors) return fail(errors.error().code, "profiles/errors.csv: " + errors.error().message, errors.error().help);
  return std::make_shared<const forecast::MeasuredErrors>(*std::move(errors));
}

forecast::ErrorRange CallErrors::at(std::size_t size, const std::string& algorithm) const {
  if (is_measured(algorithm) && size < by_size.size()) return by_size[size];
  forecast::Predicted what;
  what.profile = profile;
  what.algorithm = algorithm;
  return forecast::MeasuredErrors().find(what);
}

Result<CallErrors> find_errors(const Topology& topology, const Collective& collective, std::span<const Bytes> sizes,
                               const forecast::Software* software, const std::string& version, const std::string& gpu) {
  if (software == nullptr) return CallErrors();
  auto classes = shipped_errors();
  if (!classes) return tl::unexpected(classes.error());
  CallErrors errors{*std::move(classes), software->profile.name, {sizes.begin(), sizes.end()}, {}};
  forecast::Predicted what;
  what.profile = software->profile.name;
  what.collective = collective.kind;
  what.machines = planners::group_domains(topology).groups.size();
  what.ranks = collective.rank_count;
  what.gpu = gpu;
  if (!version.empty()) {
    if (const auto number = profile::version_number(version)) what.version = *number;
  }
  for (const Bytes size : sizes) {
    what.size = size;
    errors.by_size.push_back(errors.classes->find(what));
  }
  return errors;
}

std::vector<std::string> errors_sentences(const CallErrors& errors, std::span<const std::string> algorithms) {
  const auto& ranges = errors.by_size;
  if (ranges.empty()) return {};
  std::vector<std::string> sentences;
  if (std::ranges::none_of(algorithms, is_measured)) {
    sentences.push_back(fmt::format("{} under {}: no measurements; NCCL's own algorithms have some",
                                    fmt::join(algorithms, ", "), errors.profile));
  }
  for (std::size_t first = 0; first < ranges.size();) {
    std::size_t last = first;
    const std::string shown = range_text(ranges[first]);
    while (last + 1 < ranges.size() && range_text(ranges[last + 1]) == shown) ++last;
    const bool is_known = ranges[first].of != nullptr;
    sentences.push_back(fmt::format("nccl {}: {}{}", sizes_text(errors.sizes[first], errors.sizes[last]),
                                    is_known ? "nine in ten measurements at " : "", shown));
    first = last + 1;
  }
  return sentences;
}

std::string errors_text(const CallErrors& errors, std::span<const std::string> algorithms) {
  std::string text;
  for (const std::string& sentence : errors_sentences(errors, algorithms)) text += "# " + sentence + "\n";
  return text;
}

nlohmann::ordered_json range_json(const forecast::ErrorRange& range, double seconds) {
  if (range.of == nullptr) return {{"outside", range.outside}};
  nlohmann::ordered_json said = {{"low", seconds * range.of->low},
                                 {"high", seconds * range.of->high},
                                 {"part", part_between},
                                 {"points", range.of->points},
                                 {"systems", range.of->systems}};
  if (range.of->held) said["held"] = *range.of->held;
  if (!range.outside.empty()) said["outside"] = range.outside;
  return said;
}

void add_range_columns(Table& table, const std::string& of) {
  table.add_column("low", "(us)", Table::Align::right, of);
  table.add_column("high", "(us)", Table::Align::right, of);
  table.add_column("outside", "", Table::Align::left, of);
}

void add_range_cells(std::vector<std::string>& cells, const forecast::ErrorRange& range, double seconds) {
  constexpr double micro = 1e6;
  for (const double factor : {range.of != nullptr ? range.of->low : 0, range.of != nullptr ? range.of->high : 0}) {
    cells.push_back(range.of != nullptr ? fmt::format("{:.2f}", micro * seconds * factor) : "");
  }
  cells.push_back(range.outside);
}

}  // namespace espalier::cli
