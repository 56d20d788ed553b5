#include "profile/profiled_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "planners/graph/rank_groups.h"
#include "planners/nccl/nccl.h"
#include "profile/nccl_belief.h"

namespace espalier::profile {
namespace {

constexpr std::string_view nccl_prefix = "nccl/";

bool is_nccl(const planners::Candidate& candidate) { return candidate.planner.starts_with(nccl_prefix); }

/// Which costs a schedule has: those of NCCL's algorithm of that name; of the planners, what switches add and copy has
/// those of NVLS, rings those of rings and all others those of trees.
Shape shape_of(const planners::Candidate& candidate, std::size_t machines) {
  if (is_nccl(candidate)) {
    const std::string_view name = std::string_view(candidate.planner).substr(nccl_prefix.size());
    for (const Shape shape : all_shapes) {
      if (to_string(shape) == name) return shape;
    }
  }
  if (!candidate.schedule.relays.empty()) return machines > 1 ? Shape::nvls_tree : Shape::nvls;
  return candidate.planner == "ring" ? Shape::ring : Shape::tree;
}

/// Into how many parts NCCL's algorithm divides what a channel carries.
std::uint64_t shards_of(Shape shape, const Collective& collective, std::size_t machines) {
  const bool is_rooted = collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::reduce;
  switch (shape) {
    case Shape::tree: return 1;
    case Shape::nvls_tree: return std::max<std::uint64_t>(1, collective.rank_count / machines);
    default: return is_rooted ? 1 : std::max<std::uint64_t>(1, collective.rank_count);
  }
}

/// What a run takes when the fullest link never waits, in seconds.
double expected_seconds(const Setting& setting, const planners::ChunkModel& chunks, Bytes size) {
  const double payload = static_cast<double>(setting.endpoints.payload_ppm) / whole_ppm;
  return setting.endpoints.launch.seconds() + chunks.latency() + chunks.load_time(size) / payload;
}

std::string name_of(const std::string& planner, sim::Protocol protocol) {
  return fmt::format("{} with {}", planner, sim::to_string(protocol));
}

Error no_costs(const Profile& profile, const std::string& algorithm) {
  return {ErrorCode::unsupported, fmt::format("the profile {} has no costs for {} here", profile.name, algorithm),
          "name another algorithm, protocol or profile"};
}

}  // namespace

ProfiledRuns::ProfiledRuns(const Topology& topology, const planners::Candidates& candidates, const Options& options)
    : topology_(topology),
      candidates_(candidates),
      options_(options),
      machines_(planners::group_ranks(topology).groups.size()) {}

Result<const Setting*> ProfiledRuns::find_setting(Shape shape, sim::Protocol protocol, const Way& way) {
  std::unique_ptr<Setting>& known = settings_[{shape, protocol}];
  if (!known) {
    auto made = make_setting(options_.profile, way, protocol, options_.launch, topology_, machines_);
    if (!made) return tl::unexpected(made.error());
    known = std::make_unique<Setting>(*std::move(made));
  }
  return known.get();
}

Result<std::vector<ProfiledRuns::Option*>> ProfiledRuns::options_of(const planners::Candidate& candidate) {
  const Shape shape = shape_of(candidate, machines_);
  std::vector<Option*> found;
  const std::scoped_lock lock(mutex_);
  for (const auto& [key, way] : options_.profile.ways) {
    const auto& [of, protocol] = key;
    if (of != shape || (options_.protocol && *options_.protocol != protocol)) continue;
    Option& option = made_[{&candidate, protocol}];
    if (option.candidate == nullptr) {
      const auto setting = find_setting(shape, protocol, way);
      if (!setting) return tl::unexpected(setting.error());
      auto simulator = sim::Simulator::make(candidate.schedule, (*setting)->topology, (*setting)->endpoints.engines());
      if (!simulator) return tl::unexpected(simulator.error());
      option.candidate = &candidate;
      option.shape = shape;
      option.protocol = protocol;
      option.way = &way;
      option.setting = *setting;
      option.chunks.emplace(candidate.schedule, (*setting)->topology);
      option.simulator.emplace(*std::move(simulator));
    }
    found.push_back(&option);
  }
  return found;
}

Result<sim::Report> ProfiledRuns::simulate(Option& option, Bytes size, const Cut& cut) {
  sim::Options how;
  how.size = size;
  how.set(cut);
  how.element_size = options_.element_size;
  how.model = options_.model;
  how.launch = option.setting->endpoints.launch;
  how.payload_ppm = option.setting->endpoints.payload_ppm;
  how.conditions = options_.conditions;
  return option.simulator->run(how);
}

Result<ProfiledRun> ProfiledRuns::run_as_nccl(std::vector<Option*> options, Bytes size) {
  const auto believed = [&](const Option* option) {
    return believed_seconds(*option->way, option->shape, option->protocol, *option->chunks, size, machines_,
                            topology_.rank_count());
  };
  std::ranges::stable_sort(options, {}, believed);
  Option& best = *options.front();
  const std::uint64_t shards = shards_of(best.shape, best.candidate->schedule.collective, machines_);
  Bytes chunk = options_.cut.chunk.value_or(
      chunk_of(*best.way, options_.profile.channels, size, shards, best.chunks->largest_part()));
  if (chunk.count == 0) chunk = best.chunks->choose(size);
  chunk.count = std::max(chunk.count, options_.element_size);
  auto report = simulate(best, size, {chunk, options_.cut.ahead.value_or(0)});
  if (!report) return tl::unexpected(report.error());
  constexpr double micro = 1e6;
  std::string why = fmt::format("its tuner counts {:.1f} us for {}", believed(&best) * micro,
                                name_of(best.candidate->planner, best.protocol));
  if (options.size() > 1) {
    why += fmt::format(" and {:.1f} us for {}", believed(options[1]) * micro,
                       name_of(options[1]->candidate->planner, options[1]->protocol));
  }
  return ProfiledRun{best.candidate, best.protocol, best.setting, *std::move(report), std::move(why)};
}

Result<ProfiledRun> ProfiledRuns::run_fastest(std::vector<Option*> options, Bytes size) {
  const auto least = [&](const Option* option) {
    const double payload = static_cast<double>(option->way->payload_ppm) / whole_ppm;
    return option->setting->endpoints.launch.seconds() +
           std::max(option->chunks->latency(), option->chunks->load_time(size) / payload);
  };
  const auto expected = [&](const Option* option) { return expected_seconds(*option->setting, *option->chunks, size); };
  std::ranges::stable_sort(options, {}, expected);
  std::optional<ProfiledRun> best;
  for (Option* option : options) {
    if (best && least(option) >= best->report.elapsed.seconds()) continue;
    planners::FixedCut fixed = options_.cut;
    fixed.payload = static_cast<double>(option->way->payload_ppm) / whole_ppm;
    const Picoseconds launch = option->setting->endpoints.launch;
    const Bytes least_chunk =
        least_chunk_of(*option->way, options_.profile.channels, size, option->chunks->largest_part());
    const auto found = planners::find_best_cut(*option->chunks, size, fixed, [&](const Cut& cut) -> Result<RunReport> {
      auto report = simulate(*option, size, {std::max(cut.chunk, least_chunk), cut.ahead});
      if (!report) return tl::unexpected(report.error());
      report->elapsed = report->elapsed - launch;  // The cut has no part in it.
      return static_cast<const RunReport&>(*report);
    });
    if (!found) return tl::unexpected(found.error());
    if (best && found->elapsed + launch >= best->report.elapsed) continue;
    auto report = simulate(*option, size, {found->chunk, found->ahead});
    if (!report) return tl::unexpected(report.error());
    best = ProfiledRun{option->candidate, option->protocol, option->setting, *std::move(report), {}};
  }
  return *std::move(best);
}

Result<RunReport> ProfiledRuns::evaluate(const Schedule& schedule, Bytes size, const Cut& cut) {
  const auto of_schedule = [&](const planners::Candidate& candidate) { return &candidate.schedule == &schedule; };
  const auto candidate = std::ranges::find_if(candidates_.made, of_schedule);
  ESPALIER_CHECK(candidate != candidates_.made.end(), "a schedule of the candidates");
  const auto options = options_of(*candidate);
  if (!options) return tl::unexpected(options.error());
  if (options->empty()) return tl::unexpected(no_costs(options_.profile, candidate->planner));
  const auto expected = [&](const Option* option) { return expected_seconds(*option->setting, *option->chunks, size); };
  Option& best = **std::ranges::min_element(*options, {}, expected);
  const Bytes least = least_chunk_of(*best.way, options_.profile.channels, size, best.chunks->largest_part());
  auto report = simulate(best, size, {std::max(cut.chunk, least), cut.ahead});
  if (!report) return tl::unexpected(report.error());
  return static_cast<const RunReport&>(*report);
}

Result<ProfiledRun> ProfiledRuns::run(const std::string& algorithm, Bytes size) {
  std::vector<Option*> options;
  for (const planners::Candidate& candidate : candidates_.made) {
    const bool is_meant = algorithm == "auto"   ? !is_nccl(candidate)
                          : algorithm == "nccl" ? is_nccl(candidate)
                                                : candidate.planner == algorithm;
    if (!is_meant) continue;
    const auto of_candidate = options_of(candidate);
    if (!of_candidate) return tl::unexpected(of_candidate.error());
    options.insert(options.end(), of_candidate->begin(), of_candidate->end());
  }
  if (options.empty()) {
    return tl::unexpected(no_costs(options_.profile, algorithm));
  }
  return algorithm.starts_with("nccl") ? run_as_nccl(std::move(options), size) : run_fastest(std::move(options), size);
}

Result<RunReport> run_once(const Topology& topology, const Schedule& schedule, Bytes size, const Cut& cut,
                           const ProfiledRuns::Options& options) {
  planners::Candidates one;
  one.made.push_back({schedule.algorithm, schedule, planners::ChunkModel(schedule, topology)});
  return ProfiledRuns(topology, one, options).evaluate(one.made.front().schedule, size, cut);
}

Result<ProfiledSummary> run_nccl(const Topology& topology, const Collective& collective, Bytes size,
                                 const ProfiledRuns::Options& options) {
  const auto candidates = planners::make_candidates(topology, collective, planners::nccl_planners());
  if (!candidates) return tl::unexpected(candidates.error());
  auto ran = ProfiledRuns(topology, *candidates, options).run("nccl", size);
  if (!ran) return tl::unexpected(ran.error());
  return ProfiledSummary{fmt::format("{}/{}", ran->candidate->planner, sim::to_string(ran->protocol)),
                         static_cast<const RunReport&>(ran->report)};
}

}  // namespace espalier::profile
