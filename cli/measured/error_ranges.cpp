#include "cli/measured/error_ranges.h"

#include <fmt/format.h>

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
bool is_measured(const std::string& algorithm) { return algorithm == "nccl" || forecast::is_nccl_algorithm(algorithm); }

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

Result<SimulationErrors> find_errors(const Simulation& simulation, const forecast::Software& software,
                                     const std::string& version) {
  auto classes = shipped_errors();
  if (!classes) return tl::unexpected(classes.error());
  SimulationErrors errors{*std::move(classes), {}};
  forecast::Predicted what;
  what.profile = software.profile.name;
  what.collective = simulation.collective.kind;
  what.machines = planners::group_domains(*simulation.topology).groups.size();
  what.ranks = simulation.collective.rank_count;
  if (!version.empty()) {
    if (const auto number = profile::version_number(version)) what.version = *number;
  }
  for (const Bytes size : simulation.sizes) {
    what.size = size;
    errors.by_size.push_back(errors.classes->find(what));
  }
  return errors;
}

std::vector<std::string> errors_sentences(const Simulation& simulation) {
  const auto& ranges = simulation.errors.by_size;
  if (ranges.empty() || std::ranges::none_of(simulation.algorithms, is_measured)) return {};
  std::vector<std::string> sentences;
  for (std::size_t first = 0; first < ranges.size();) {
    std::size_t last = first;
    const std::string shown = range_text(ranges[first]);
    while (last + 1 < ranges.size() && range_text(ranges[last + 1]) == shown) ++last;
    const bool is_known = ranges[first].of != nullptr;
    sentences.push_back(fmt::format("nccl {}: {}{}", sizes_text(simulation.sizes[first], simulation.sizes[last]),
                                    is_known ? "nine in ten measurements at " : "", shown));
    first = last + 1;
  }
  return sentences;
}

std::string errors_text(const Simulation& simulation) {
  std::string text;
  for (const std::string& sentence : errors_sentences(simulation)) text += "# " + sentence + "\n";
  return text;
}

nlohmann::ordered_json range_json(const Simulation& simulation, std::size_t result) {
  const auto& ranges = simulation.errors.by_size;
  const forecast::CandidateRun& run = simulation.results[result];
  if (ranges.empty() || !is_measured(run.algorithm)) return nullptr;
  const forecast::ErrorRange& range = ranges[result / simulation.algorithms.size()];
  if (range.of == nullptr) return {{"outside", range.outside}};
  const double time = run.report.elapsed.seconds();
  nlohmann::ordered_json said = {{"low", time * range.of->low},
                                 {"high", time * range.of->high},
                                 {"part", part_between},
                                 {"points", range.of->points},
                                 {"systems", range.of->systems}};
  if (range.of->held) said["held"] = *range.of->held;
  if (!range.outside.empty()) said["outside"] = range.outside;
  return said;
}

}  // namespace espalier::cli
