#include "cli/calibration/profile_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>

#include "base/parallel.h"
#include "base/suggest.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/jobs/plan_shown.h"
#include "cli/jobs/predict_rows.h"
#include "cli/jobs/run_files.h"
#include "compare/compare_results.h"
#include "forecast/profiled_runs.h"
#include "planners/graph/rank_groups.h"
#include "profile/costed_network.h"

namespace espalier::cli {
namespace {

/// What a row's time hangs on, beside launch and base, which only move it.
std::string costs_of(const profile::Profile& profile, const profile::ProtocolCosts& way) {
  std::string text = fmt::format("{} {} {} {}", profile.reached_ppm[0], profile.reached_ppm[1], profile.reached_ppm[2],
                                 profile.switched_ppm);
  for (const Picoseconds hop : way.hop) text += fmt::format(" {}", hop.count);
  for (const Bandwidth most : way.most) text += fmt::format(" {}", most.bytes_per_second);
  return text + fmt::format(" {} {} {} {}", way.rate_ppm, way.own_ppm, way.drain_ppm, way.message.count);
}

/// The algorithm and protocol that a row ran, with their costs.
const auto& entry_of(const profile::Profile& profile, const ProfileRow& row) {
  const auto found = profile.ways.find({row.shape, row.protocol});
  return found == profile.ways.end() ? *profile.ways.begin() : *found;
}

const profile::ProtocolCosts& way_of(const profile::Profile& profile, const ProfileRow& row) {
  return entry_of(profile, row).second;
}

forecast::ProfiledRuns::Options options_with(const profile::Profile& profile, std::optional<sim::Protocol> protocol,
                                             Bytes chunk) {
  forecast::ProfiledRuns::Options options;
  if (chunk.count > 0) options.pacing.chunk = chunk;
  options.profile = profile;
  options.protocol = protocol;
  return options;
}

/// What a version of the software has of a profile; 0: all.
Result<profile::Profile> restricted(const profile::Profile& profile, std::uint32_t version) {
  profile::Profile left = profile;
  if (version == 0) return left;
  if (auto done = left.restrict_to(version); !done) return tl::unexpected(done.error());
  return left;
}

/// What a row of a table ran: what it names itself, of what "auto" took, or else what was forced or NCCL picks.
const std::string& algorithm_of(const compare::Measurement& row, const TableSource& source) {
  const bool is_auto = row.algorithm == "auto" && !row.planner.empty();
  return row.algorithm.empty() ? source.algorithm : is_auto ? row.planner : row.algorithm;
}

bool can_tell(const compare::Measurement& row, const std::string& collective) {
  return row.collective == collective && row.size.count > 0 && row.seconds > 0 && row.wrong.value_or(0) == 0;
}

/// What the rows of a collective ran, each once, by commas.
std::string algorithms_of(const compare::Measurements& measured, const TableSource& source,
                          const std::string& collective) {
  std::set<std::string> names;
  for (const compare::Measurement& row : measured.rows) {
    if (can_tell(row, collective)) names.insert(algorithm_of(row, source));
  }
  return fmt::format("{}", fmt::join(names, ","));
}

/// Why a row's algorithm does not run on the table's machine: what its planner said, or else `why`.
Error not_run(const std::string& file, const compare::Measurement& row, const std::string& algorithm,
              const planners::Candidates& candidates, const Error& why) {
  const auto refused = std::ranges::find(candidates.refused, algorithm, &planners::Refusal::planner);
  const Error& reason = refused == candidates.refused.end() ? why : refused->error;
  return {reason.code, fmt::format("{}:{}: {}", file, row.line, reason.message), reason.help};
}

}  // namespace

Result<TableSource> parse_table_source(const std::string& text) {
  TableSource source;
  const std::size_t at = text.find('@');
  source.file = text.substr(0, at);
  if (at == std::string::npos) return source;
  std::string rest = text.substr(at + 1);
  for (bool is_machine = true; !rest.empty() || is_machine; is_machine = false) {
    const std::size_t comma = rest.find(',');
    const std::string item = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    if (is_machine) {
      source.machine = item;
      continue;
    }
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals), value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (value.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("--from: '{}' has no value", item.substr(0, 60)),
                  "such as table.txt@dgx-h100,launch=one-process");
    }
    if (key == "launch") {
      source.launch = value;
    } else if (key == "algorithm" && (value == "nccl" || value.starts_with("nccl/"))) {
      source.algorithm = value;
    } else if (key == "ranks") {
      source.ranks = value;
    } else if (key == "protocol") {
      const auto protocol = sim::parse_protocol(value);
      if (!protocol) return tl::unexpected(protocol.error());
      source.protocol = *protocol;
    } else if (key == "version") {
      const auto version = profile::version_number(value);
      if (!version) return tl::unexpected(version.error());
      source.version = *version;
    } else {
      return fail(
          ErrorCode::invalid_input, fmt::format("--from: '{}' is not known of a table", item.substr(0, 60)),
          "such as "
          "table.txt@dgx-h100,launch=one-process,algorithm=nccl/ring,protocol=simple,version=2.4,ranks=gpu[0-3]");
    }
  }
  return source;
}

OrStop<void> ProfileCalibration::add(const Console& console, const TableSource& source, const TopologyFlags& machine,
                                     const std::string& collective, const profile::Profile& given) {
  TopologyFlags of_table = machine;
  if (!source.machine.empty()) {
    of_table = {};
    of_table.argument = source.machine;
  }
  if (!source.ranks.empty()) of_table.ranks = source.ranks;
  if (const auto launch = given.launch(source.launch); !launch) return usage(launch.error());
  const auto as_of = restricted(given, source.version);
  if (!as_of) return usage(as_of.error());
  auto loaded = load_machine(console, of_table);
  if (!loaded) return tl::unexpected(Stop{loaded.error().error, loaded.error().is_usage, loaded.error().shown});
  auto runs = load_runs(console, {source.file}, collective);
  if (!runs) return tl::unexpected(runs.error());
  const compare::RunFile& run = runs->front().second;
  if (!std::holds_alternative<compare::Measurements>(run)) {
    return stop({ErrorCode::invalid_input, source.file + " is a timeline, and profiles are calibrated from tables",
                 "give what nccl-tests or run --json wrote"});
  }
  auto measured = std::get<compare::Measurements>(run);
  keep_whole(measured);
  keep_ranks(measured, loaded->topology.rank_count());
  for (const compare::Measurement& row : measured.rows) {
    if (row.plan.empty()) continue;
    return stop({ErrorCode::invalid_input,
                 fmt::format("{}:{}: ran the plan {}, and a profile is calibrated from what is planned anew",
                             source.file, row.line, row.plan),
                 "give rows of run -a NAME, or what nccl-tests wrote"});
  }
  const auto names_none = [](const compare::Measurement& row) { return row.algorithm.empty(); };
  if (source.algorithm != "nccl" && std::ranges::none_of(measured.rows, names_none)) {
    return usage({ErrorCode::invalid_input,
                  fmt::format("--from: algorithm={} does not apply: {} says itself which algorithm ran",
                              source.algorithm, source.file),
                  "leave it out"});
  }
  if (const auto equal = check_equal(measured, "a profile's calibration"); !equal) return tl::unexpected(equal.error());
  const auto sizes = sizes_by_collective(measured, loaded->topology);
  if (!sizes) return tl::unexpected(sizes.error());
  Table& table = tables_.emplace_back(Table{source, loaded->topology.name(), {}});
  files_.push_back(source.file);
  const std::size_t first = rows_.size();
  std::vector<double> predicted;
  for (const auto& [name, of_collective] : *sizes) {
    const std::size_t machines = planners::group_domains(loaded->topology).groups.size();
    Planned& planned = table.planned.emplace(name, Planned{loaded->topology, {}, machines}).first->second;
    const auto times = add_rows(console, planned, source, measured, name, given, *as_of);
    if (!times) return tl::unexpected(times.error());
    predicted.insert(predicted.end(), times->begin(), times->end());
  }
  mark_launch_bound(first, predicted);
  return {};
}

OrStop<std::vector<double>> ProfileCalibration::add_rows(const Console& console, Planned& planned,
                                                         const TableSource& source,
                                                         const compare::Measurements& measured,
                                                         const std::string& collective, const profile::Profile& given,
                                                         const profile::Profile& as_of) {
  std::vector<double> predicted;
  const std::string names = algorithms_of(measured, source, collective);
  if (names.empty()) return predicted;
  const auto of = default_collective(collective, planned.topology);
  if (!of) return stop(of.error());
  const auto algorithms = parse_algorithms(names, true);
  if (!algorithms)
    return stop({ErrorCode::invalid_input, source.file + ": " + algorithms.error().message, algorithms.error().help});
  auto candidates = plan_shown(console, {.machine = &planned.topology,
                                         .collective = *of,
                                         .algorithms = *algorithms,
                                         .forms = forecast::PlanForms::schedules,
                                         .paths = given.paths});
  if (!candidates) return stop(candidates.error());
  planned.candidates = *std::move(candidates);
  std::map<std::int64_t, forecast::ProfiledRuns> by_chunk;
  for (const compare::Measurement& row : measured.rows) {
    if (!can_tell(row, collective)) continue;
    const Bytes near = predictable_size(row.size, *of);
    const Bytes chunk = row.algorithm.empty() ? Bytes{} : row.chunk;
    const auto [runs, is_new] = by_chunk.try_emplace(chunk.count, planned.topology, planned.candidates,
                                                     options_with(as_of, source.protocol, chunk));
    const std::string& algorithm = algorithm_of(row, source);
    const auto picked = runs->second.run(algorithm, near);
    if (!picked)
      return stop(row.algorithm.empty() ? picked.error()
                                        : not_run(source.file, row, algorithm, planned.candidates, picked.error()));
    rows_.push_back({tables_.size() - 1, collective, row.size, near, picked->candidate->planner, picked->shape,
                     picked->protocol, chunk, row.seconds, false});
    predicted.push_back(picked->report.elapsed.seconds());
    known_.emplace_back();
  }
  return predicted;
}

void ProfileCalibration::mark_launch_bound(std::size_t first, const std::vector<double>& predicted) {
  if (predicted.empty()) return;
  constexpr double as_long = 1.03;
  const double least = *std::ranges::min_element(predicted);
  for (std::size_t i = 0; i < predicted.size(); ++i) rows_[first + i].is_launch_bound = predicted[i] <= as_long * least;
}

std::vector<compare::HoldOutPart> ProfileCalibration::parts_by_table() const {
  std::vector<compare::HoldOutPart> parts;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].table >= parts.size()) parts.resize(rows_[i].table + 1);
    parts[rows_[i].table].name = files_[rows_[i].table];
    parts[rows_[i].table].runs.push_back(i);
  }
  return parts;
}

std::vector<compare::HoldOutPart> ProfileCalibration::parts_by_machine() const {
  std::map<std::string, std::vector<std::size_t>> by_name;
  std::vector<std::string> names;
  for (const Table& table : tables_) names.push_back(table.machine);
  for (std::size_t i = 0; i < rows_.size(); ++i) by_name[names[rows_[i].table]].push_back(i);
  std::vector<compare::HoldOutPart> parts;
  for (auto& [name, runs] : by_name) parts.push_back({name, std::move(runs)});
  return parts;
}

std::vector<double> ProfileCalibration::importance() const {
  std::map<std::size_t, double> bound;
  for (const ProfileRow& row : rows_) bound[row.table] += row.is_launch_bound ? 1 : 0;
  std::vector<double> weights;
  for (const ProfileRow& row : rows_) {
    const double count = bound[row.table];
    const bool is_one_of_many = row.is_launch_bound && count > counted_launch_bound;
    weights.push_back(is_one_of_many ? std::sqrt(counted_launch_bound / count) : 1.0);
  }
  return weights;
}

std::vector<double> ProfileCalibration::measured() const {
  std::vector<double> seconds;
  for (const ProfileRow& row : rows_) seconds.push_back(row.seconds);
  return seconds;
}

Result<std::vector<double>> ProfileCalibration::predict(const profile::Profile& profile,
                                                        std::span<const std::size_t> which) {
  std::vector<const Table*> tables;
  for (const Table& table : tables_) tables.push_back(&table);
  const auto added_of = [&](std::size_t index) {
    const ProfileRow& row = rows_[index];
    const profile::ProtocolCosts& way = way_of(profile, row);
    return way.base + profile::ranks_time(way, tables[row.table]->planned.at(row.collective).topology.rank_count());
  };
  std::map<std::tuple<std::size_t, std::string, sim::Protocol, std::int64_t>, forecast::ProfiledRuns> runners;
  std::vector<std::size_t> fresh;
  for (const std::size_t index : which) {
    const ProfileRow& row = rows_[index];
    if (known_[index].contains(costs_of(profile, way_of(profile, row)))) continue;
    const Planned& planned = tables[row.table]->planned.at(row.collective);
    runners.try_emplace({row.table, row.collective, row.protocol, row.chunk.count}, planned.topology,
                        planned.candidates, options_with(profile, row.protocol, row.chunk));
    fresh.push_back(index);
  }
  std::vector<Result<double>> seconds(fresh.size(), 0.0);
  run_parallel(fresh.size(), usable_threads(), [&](std::size_t i) {
    const std::size_t at = fresh.size() - 1 - i;  // Large messages come last, and take longest.
    const ProfileRow& row = rows_[fresh[at]];
    const auto run = runners.at({row.table, row.collective, row.protocol, row.chunk.count}).run(row.planner, row.near);
    seconds[at] =
        run ? Result<double>((run->report.elapsed - added_of(fresh[at])).seconds()) : tl::unexpected(run.error());
  });
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (!seconds[i]) return tl::unexpected(seconds[i].error());
    known_[fresh[i]].emplace(costs_of(profile, way_of(profile, rows_[fresh[i]])), *seconds[i]);
  }
  std::vector<double> times;
  for (const std::size_t index : which) {
    const ProfileRow& row = rows_[index];
    const auto launch = profile.launch(tables[row.table]->source.launch);
    if (!launch) return tl::unexpected(launch.error());
    const auto& [key, way] = entry_of(profile, row);
    const Planned& planned = tables[row.table]->planned.at(row.collective);
    const std::size_t ranks = planned.topology.rank_count();
    const std::uint32_t channels = profile::channels_of(profile, planned.topology, planned.machines);
    const std::uint32_t started = profile::channels_started(key.first, key.second, channels, row.near, ranks);
    const Picoseconds start = profile::launch_of(*launch, key.first, ranks, planned.machines, started);
    const double of_gpus = known_[index].at(costs_of(profile, way)) + added_of(index).seconds();
    const double shown = of_gpus - launch->overlap.seconds();
    times.push_back(launch->overlap.count > 0 ? std::max(of_gpus, start.seconds() + std::max(0.0, shown))
                                              : of_gpus + start.seconds());
  }
  return times;
}

}  // namespace espalier::cli
