#include "nccl_plugins/tuner/forecast_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <set>

#include "forecast/question.h"
#include "profile/read_profile.h"
#include "topology/yaml/read_topology.h"

namespace espalier::nccl_plugins::tuner {
namespace {

constexpr std::array simulated_protocols = {sim::Protocol::ll, sim::Protocol::ll128, sim::Protocol::simple};

/// The first error of a reading.
template <class Reading>
tl::unexpected<Error> first_error(const Reading& reading, const std::string& file) {
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", file, diagnostic.place.line, diagnostic.message),
                diagnostic.help);
  }
  return fail(ErrorCode::invalid_input, file + " cannot be read");
}

/// The file of "nccl-hopper:one-process", and the launch.
std::pair<std::filesystem::path, std::string> find_profile_file(const std::string& named, const std::string& machine,
                                                                const std::string& profiles) {
  const std::size_t colon = named.rfind(':');
  const std::string name = named.substr(0, colon);
  const std::string launch = colon == std::string::npos ? std::string() : named.substr(colon + 1);
  std::error_code status;
  for (const std::filesystem::path& path :
       {std::filesystem::path(name), std::filesystem::path(machine).parent_path() / name,
        std::filesystem::path(profiles) / (name + ".yaml"),
        std::filesystem::path(machine).parent_path() / "profiles" / (name + ".yaml")}) {
    if (std::filesystem::is_regular_file(path, status)) return {path, launch};
  }
  return {name, launch};
}

}  // namespace

Result<std::shared_ptr<ForecastTable>> ForecastTable::load(const std::string& machine, const std::string& profile,
                                                           const std::string& profiles) {
  TopologyReading reading = read_topology_file(machine);
  if (!reading.topology) return first_error(reading, machine);
  const std::string& named = profile.empty() ? reading.profile : profile;
  if (named.empty()) {
    return fail(ErrorCode::invalid_input, machine + " names no profile, so that nothing is known of protocols",
                "set ESPALIER_TUNER_PROFILE");
  }
  const auto [path, launch] = find_profile_file(named, machine, profiles);
  std::error_code status;
  if (!std::filesystem::exists(path, status)) {
    return fail(ErrorCode::unavailable, "there is no profile " + named, "set ESPALIER_TUNER_PROFILE to its file");
  }
  profile::ProfileReading read = profile::read_profile_file(path);
  if (!read.profile) return first_error(read, path.string());
  forecast::Software software{read.profile->name, *std::move(read.profile), {}, {}};
  const auto starts = software.profile.launch(launch);
  if (!starts) return tl::unexpected(starts.error());
  software.launch = *starts;
  return std::shared_ptr<ForecastTable>(new ForecastTable(*std::move(reading.topology), std::move(software)));
}

std::size_t ForecastTable::host_count() const {
  std::set<std::string> hosts;
  for (std::size_t rank = 0; rank < machine_.rank_count(); ++rank) {
    hosts.insert(machine_.node(machine_.node_of(Rank(rank))).host);
  }
  return hosts.size();
}

ForecastTable::Planned* ForecastTable::plan(CollectiveKind kind) {
  std::unique_ptr<Planned>& known = planned_[kind];
  if (known) return known.get();
  const Collective collective{kind, static_cast<std::uint32_t>(machine_.rank_count()),
                              has_root(kind) ? Rank(0) : Rank()};
  const auto software = std::make_shared<const forecast::Software>(software_);
  auto candidates = forecast::plan({.machine = &machine_,
                                    .collective = collective,
                                    .algorithms = {algorithm_names.begin(), algorithm_names.end()},
                                    .how = {.profile = software}});
  known = std::make_unique<Planned>();
  if (!candidates) return known.get();
  known->candidates = *std::move(candidates);
  for (const sim::Protocol protocol : simulated_protocols) {
    forecast::Software only = software_;
    only.protocol = protocol;
    forecast::RunOptions options;
    options.profile = std::make_shared<const forecast::Software>(std::move(only));
    known->runs.push_back(std::make_unique<forecast::CandidateRuns>(machine_, known->candidates, options));
  }
  return known.get();
}

const std::vector<Forecast>& ForecastTable::rank(CollectiveKind kind, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto power = static_cast<unsigned>(std::bit_width(std::max<std::size_t>(bytes, 1)) - 1);
  const auto [place, is_new] = known_.try_emplace({kind, power});
  if (!is_new) return place->second;
  Planned* const planned = plan(kind);
  const std::int64_t element_size = 4;
  const auto ranks = static_cast<std::int64_t>(machine_.rank_count());
  const std::int64_t whole = element_size * (has_root(kind) ? 1 : ranks);
  constexpr unsigned max_power = 40;
  const std::int64_t size = std::max(whole, (std::int64_t{1} << std::min(power, max_power)) / whole * whole);
  for (std::size_t protocol = 0; protocol < planned->runs.size(); ++protocol) {
    for (const planners::Candidate& candidate : planned->candidates.made) {
      const auto name = std::ranges::find(algorithm_names, candidate.planner);
      if (name == algorithm_names.end()) continue;
      const auto run = planned->runs[protocol]->run(candidate.planner, {size});
      if (!run) continue;
      place->second.push_back(
          {static_cast<std::size_t>(name - algorithm_names.begin()), protocol, run->report.elapsed.seconds()});
    }
  }
  std::ranges::stable_sort(place->second, {}, &Forecast::seconds);
  return place->second;
}

}  // namespace espalier::nccl_plugins::tuner
