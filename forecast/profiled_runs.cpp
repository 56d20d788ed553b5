#include "forecast/profiled_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "forecast/counted_view.h"
#include "forecast/question.h"
#include "planners/graph/rank_groups.h"
#include "planners/nccl/nccl.h"
#include "planners/ring/ring_forest.h"
#include "profile/cost_shapes.h"
#include "schedule/loads.h"

namespace espalier::forecast {
namespace {

/// Rings that broadcast or reduce hand on so much per channel: what the pipelines of the one published table of
/// broadcast (twelve V100, 256 KiB to 128 MiB) show, whatever the protocol's chunk.
constexpr Bytes rooted_chunk{32 << 10};
/// Between machines as many of these are under way as a channel's buffer holds: eight steps, of 512 KiB or, with LL, of
/// one piece.
constexpr std::uint32_t steps_of_buffer = 8;
constexpr Bytes step_of_buffer{512 << 10};

/// Between machines sends and receives hand on so much at once; but no more pieces of a block than pipelines need.
/// Source: github.com/NVIDIA/nccl (June 2026), NCCL_P2P_NET_CHUNKSIZE.
constexpr Bytes sent_chunk{128 << 10};
constexpr std::int64_t max_sent_chunks = 64;

bool is_nccl(const planners::Candidate& candidate) { return is_nccl_algorithm(candidate.planner); }

/// Sends take PXN where there is any: NCCL does not compare.
void prefer_pxn(auto& pairs) {
  const auto is = [](profile::Shape shape) { return [shape](const auto& pair) { return pair.shape == shape; }; };
  if (std::ranges::any_of(pairs, is(profile::Shape::pxn))) std::erase_if(pairs, is(profile::Shape::p2p));
}

std::string name_of(const std::string& planner, sim::Protocol protocol) {
  return fmt::format("{} with {}", planner, sim::to_string(protocol));
}

Error no_costs(const profile::Profile& profile, const std::string& algorithm) {
  return {ErrorCode::unsupported, fmt::format("the profile {} has no costs for {} here", profile.name, algorithm),
          "name another algorithm, protocol or profile"};
}

}  // namespace

ProfiledRuns::ProfiledRuns(const Topology& topology, const planners::Candidates& candidates, const Options& options)
    : topology_(topology),
      candidates_(candidates),
      options_(options),
      machines_(planners::group_domains(topology).groups.size()),
      hosts_(planners::group_ranks(topology).groups.size()),
      channels_(profile::channels_of(options.profile, topology, machines_)) {}

std::vector<ProfiledRuns::Pair> ProfiledRuns::pairs_of(const planners::Candidate& candidate) const {
  std::vector<Pair> found;
  for (const profile::Shape shape : profile::shapes_of(candidate, machines_)) {
    for (const auto& [key, way] : options_.profile.ways) {
      const auto& [of, protocol] = key;
      if (of != shape || (options_.protocol && *options_.protocol != protocol)) continue;
      found.push_back({&candidate, shape, protocol, &way});
    }
  }
  return found;
}

Result<const profile::CostedNetwork*> ProfiledRuns::find_setting(const Pair& pair, std::uint32_t channels,
                                                                 std::uint32_t started) {
  const CollectiveKind kind = pair.candidate->collective().kind;
  const bool streams = is_nccl(*pair.candidate) && has_root(kind);
  const Topology& network = network_of(*pair.candidate, topology_);
  std::unique_ptr<profile::CostedNetwork>& known =
      settings_[{pair.shape, pair.protocol, channels, started, streams, &network}];
  if (!known) {
    const Picoseconds launch = profile::launch_of(options_.launch, pair.shape, topology_.rank_count(), hosts_, started);
    const Picoseconds overlap = options_.launch.overlap;
    const bool hides = overlap.count > 0;
    profile::ProtocolCosts way = on_ranks(*pair.way, kind, topology_.rank_count());
    if (streams) {
      const bool is_ll = pair.protocol == sim::Protocol::ll;
      way.under_way *= steps_of_buffer;
      if (!is_ll) way.under_way *= static_cast<std::uint32_t>(step_of_buffer.count / rooted_chunk.count);
    }
    auto made = profile::make_setting(options_.profile, way, pair.protocol, hides ? Picoseconds{} : launch, network,
                                      machines_, channels);
    if (!made) return tl::unexpected(made.error());
    if (hides) std::tie(made->host, made->overlap) = std::pair(launch, overlap);
    known = std::make_unique<profile::CostedNetwork>(*std::move(made));
  }
  return known.get();
}

Result<ProfiledRuns::Option*> ProfiledRuns::make_ready(const Pair& pair, Bytes size) {
  const std::uint64_t shards = profile::shards_of(pair.shape, pair.candidate->collective(), machines_);
  const std::uint32_t all = channels_;
  // Where channels have no limit of their own, fewer of them change nothing.
  const bool are_limited = pair.way->most.front().bytes_per_second > 0;
  const std::uint32_t channels = are_limited ? channels_used(*pair.way, all, size, shards) : all;
  // Where a launch does not count channels, how many it starts changes nothing.
  const std::uint32_t started = options_.launch.per_channel.count > 0
                                    ? channels_started(pair.shape, pair.protocol, all, size, topology_.rank_count())
                                    : 1;
  Option* option = nullptr;
  KnownChunks* chunks = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    option = &made_[{pair.candidate, pair.shape, pair.protocol, channels, started}];
    chunks = &chunks_[{pair.candidate, pair.shape, pair.protocol, channels}];
    if (option->setting == nullptr) {
      const auto setting = find_setting(pair, channels, started);
      if (!setting) return tl::unexpected(setting.error());
      option->pair = pair;
      option->channels = channels;
      option->setting = *setting;
    }
  }
  std::call_once(chunks->making, [&] { chunks->model = chunk_model_of(*pair.candidate, option->setting->topology); });
  const std::scoped_lock lock(mutex_);
  if (option->chunks == nullptr) option->chunks = &*chunks->model;
  return option;
}

const Result<CandidateSimulator>& ProfiledRuns::find_simulator(Option& option) {
  std::call_once(option.making, [&] {
    Option* first = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      first = first_to_run_.try_emplace({option.pair.candidate, option.pair.shape, option.pair.protocol}, &option)
                  .first->second;
    }
    const Topology& topology = option.setting->topology;
    const sim::CopyEngines engines = option.setting->endpoints.engines();
    if (first != &option) {
      const Result<CandidateSimulator>& alike = find_simulator(*first);
      option.simulator = alike ? alike->on(topology, engines) : tl::unexpected(alike.error());
    } else {
      option.simulator = CandidateSimulator::make(*option.pair.candidate, topology, engines);
    }
  });
  return *option.simulator;
}

Result<std::vector<ProfiledRuns::Option*>> ProfiledRuns::make_all_ready(const std::vector<Pair>& pairs, Bytes size) {
  std::vector<Option*> options;
  for (const Pair& pair : pairs) {
    const auto option = make_ready(pair, size);
    if (!option) return tl::unexpected(option.error());
    options.push_back(*option);
  }
  return options;
}

sim::Options ProfiledRuns::options_of(const Option& option, Bytes size, const Pacing& pacing) const {
  sim::Options how;
  how.size = size;
  how.set(pacing);
  how.element_size = options_.element_size;
  how.model = options_.model;
  how.launch = option.setting->launch_with({std::min(pacing.chunk.count, size.count)});
  how.payload_ppm = option.setting->endpoints.payload_ppm;
  how.conditions = options_.conditions;
  return how;
}

planners::RunCosts ProfiledRuns::costs_of(const Option& option, Bytes size) const {
  planners::RunCosts costs{option.chunks, options_.pacing};
  costs.fixed.payload = static_cast<double>(option.pair.way->payload_ppm) / profile::whole_ppm;
  costs.fixed.min_chunk = min_chunk_of(*option.pair.way, channels_, size, option.chunks->largest_part());
  costs.fixed.launch = option.setting->endpoints.launch;
  costs.fixed.parts = sim::simulated_parts(option.pair.candidate->schedule, option.setting->topology,
                                           option.setting->endpoints.engines(), option.pair.candidate->symmetry.get(),
                                           options_of(option, size, {size, 0}));
  return costs;
}

KnownRuns::SimulateUntil ProfiledRuns::simulator_of(Option& option, Bytes size, const Pacing& pacing) {
  return [this, &option,
          how = options_of(option, size, pacing)](Picoseconds deadline) -> Result<std::optional<sim::Report>> {
    const Result<CandidateSimulator>& simulator = find_simulator(option);
    if (!simulator) return tl::unexpected(simulator.error());
    auto report = simulator->run_until(how, deadline);
    const profile::CostedNetwork& setting = *option.setting;
    if (!report || !*report || setting.host.count == 0) return report;
    const Picoseconds of_gpus = (*report)->elapsed;
    const Picoseconds whole = profile::Launch::hide(setting.host, of_gpus, setting.overlap);
    if (whole > deadline) return std::nullopt;
    if (whole == of_gpus) return report;
    sim::Options waiting = how;  // Ranks wait for the launch.
    waiting.launch = how.launch + (whole - of_gpus);
    return simulator->run_until(waiting, deadline);
  };
}

Result<sim::Report> ProfiledRuns::simulate(Option& option, Bytes size, const Pacing& pacing) {
  return runs_.run({&option, size.count, pacing.chunk.count, pacing.ahead}, simulator_of(option, size, pacing));
}

Result<std::optional<RunReport>> ProfiledRuns::evaluate(Option& option, Bytes size, const Pacing& pacing,
                                                        Picoseconds deadline) {
  return runs_.run_until({&option, size.count, pacing.chunk.count, pacing.ahead}, deadline,
                         simulator_of(option, size, pacing));
}

Result<double> ProfiledRuns::counted_load(const planners::Candidate& candidate) {
  const std::scoped_lock lock(mutex_);
  if (!counted_) {
    auto network = profile::counted_network(topology_, *options_.profile.tuner);
    if (!network) return tl::unexpected(network.error());
    counted_ = *std::move(network);
    view_ = look_at(*counted_, *options_.profile.tuner, machines_);
    view_.channels = channels_;
  }
  const auto [load, is_new] = loads_.try_emplace(&candidate, 0.0);
  if (is_new) load->second = to_double(seconds_per_byte_of(candidate, *counted_));
  return load->second;
}

/// NCCL finds no more bandwidth for its trees than for its rings, but between two machines, where it counts what they
/// have inside: what both trees' links then carry of all_reduce.
Result<double> ProfiledRuns::load_of_trees() {
  const planners::Candidate* const ring = candidates_.find("nccl/ring");
  if (ring == nullptr) return 0.0;
  const auto load = counted_load(*ring);
  if (!load) return load;
  const auto n = static_cast<double>(topology_.rank_count());
  return *load * n / (n - 1);
}

/// Null where NCCL's search is not known or does not decide.
const profile::NcclChoices* ProfiledRuns::choices_of(CollectiveKind kind) {
  std::call_once(connecting_, [&] {
    const profile::TunerModel& tuner = *options_.profile.tuner;
    communicator_ = options_.communicators ? options_.communicators->find(topology_, tuner)
                                           : profile::communicator_of(topology_, tuner);
  });
  if (!communicator_ || !communicator_->is_held()) return nullptr;
  const std::scoped_lock lock(mutex_);
  return &choices_.try_emplace(kind, *communicator_, kind).first->second;
}

/// By what NCCL's search finds where that is known; else by what its schedules put on the links.
Result<double> ProfiledRuns::tuner_seconds_of(const Pair& pair, Bytes size) {
  const CollectiveKind kind = pair.candidate->collective().kind;
  const bool is_of_search = pair.shape == profile::Shape::ring || pair.shape == profile::Shape::tree ||
                            pair.shape == profile::Shape::nvls || pair.shape == profile::Shape::nvls_tree ||
                            pair.shape == profile::Shape::pat;
  const profile::NcclChoices* const choices = is_of_search ? choices_of(kind) : nullptr;
  if (choices != nullptr) {
    const profile::NcclWay* const way = choices->find(pair.shape, pair.protocol);
    if (way == nullptr) return std::numeric_limits<double>::infinity();
    return choices->seconds(*way, size, options_.element_size);
  }
  auto load = counted_load(*pair.candidate);
  if (!load) return load;
  profile::TunerView view = view_;
  view.collective = kind;
  if (pair.shape == profile::Shape::tree && machines_ != 2) {
    const auto least = load_of_trees();
    if (!least) return least;
    load = std::max(*load, *least);
  }
  return profile::tuner_seconds(view, pair.shape, pair.protocol, *load, size);
}

/// What NCCL's tuner says of each, quickest first; without one, what the ways themselves say.
Result<std::vector<ProfiledRuns::Pick>> ProfiledRuns::picks_of(const std::vector<Pair>& pairs, Bytes size) {
  std::vector<Pick> picks;
  for (const Pair& pair : pairs) {
    if (options_.profile.tuner) {
      const auto seconds = tuner_seconds_of(pair, size);
      if (!seconds) return tl::unexpected(seconds.error());
      picks.push_back({pair, *seconds});
    } else {
      const auto option = make_ready(pair, size);
      if (!option) return tl::unexpected(option.error());
      picks.push_back({pair, believed_seconds(*pair.way, pair.shape, pair.protocol, *(*option)->chunks, size, machines_,
                                              topology_.rank_count())});
    }
  }
  std::ranges::stable_sort(picks, {}, &Pick::seconds);
  return picks;
}

/// Nothing where one way is all there is.
std::string ProfiledRuns::why_first(const std::vector<Pick>& picks) {
  if (picks.size() < 2) return {};
  constexpr double micro = 1e6;
  std::string why = fmt::format("its tuner counts {:.1f} us for {}", picks[0].seconds * micro,
                                name_of(picks[0].pair.candidate->planner, picks[0].pair.protocol));
  if (std::isfinite(picks[1].seconds)) {
    why += fmt::format(" and {:.1f} us for {}", picks[1].seconds * micro,
                       name_of(picks[1].pair.candidate->planner, picks[1].pair.protocol));
  }
  return why;
}

Result<ProfiledRun> ProfiledRuns::run_as_nccl(const std::vector<Pair>& pairs, Bytes size) {
  std::vector<Pick> picks = {{pairs.front(), 0}};
  if (pairs.size() > 1) {
    auto found = picks_of(pairs, size);
    if (!found) return tl::unexpected(found.error());
    picks = *std::move(found);
  }
  const auto ready = make_ready(picks.front().pair, size);
  if (!ready) return tl::unexpected(ready.error());
  Option& best = **ready;
  const Pair& pair = best.pair;
  const std::uint64_t shards = profile::shards_of(pair.shape, pair.candidate->collective(), machines_);
  const std::uint32_t channels = channels_used(*pair.way, channels_, size, shards);
  const double depth = profile::depth_of(pair.shape, pair.protocol, topology_.rank_count(), machines_);
  // NCCL sends a part of each shard round every ring. Where a shard goes round one of them, it does so in as many
  // pieces.
  const double rings = static_cast<double>(planners::rings_dealt_to(pair.candidate->schedule));
  const double part = best.chunks->largest_part() / rings;
  Bytes chunk = options_.pacing.chunk.value_or(chunk_of(*pair.way, channels, size, shards, part, depth));
  if (chunk.count == 0) chunk = best.chunks->choose(size);
  if (!options_.pacing.chunk && rings > 1) {
    chunk.count = std::min(chunk.count, static_cast<std::int64_t>(part * static_cast<double>(size.count)));
  }
  if (!options_.pacing.chunk && has_root(pair.candidate->collective().kind)) {
    const double most = static_cast<double>(rooted_chunk.count) * channels * best.chunks->largest_part();
    chunk.count = std::min(chunk.count, static_cast<std::int64_t>(most));
  }
  const bool sends = pair.shape == profile::Shape::p2p || pair.shape == profile::Shape::pxn;
  if (!options_.pacing.chunk && sends && machines_ > 1) {
    const double largest = best.chunks->largest_part() * static_cast<double>(size.count);
    const auto most = std::max(sent_chunk.count, static_cast<std::int64_t>(largest) / max_sent_chunks);
    chunk.count = std::min(chunk.count, most);
  }
  // Parts are whole elements: of 65,536 in seven parts some have one more, which is no chunk of its own.
  const std::int64_t elements = std::max<std::int64_t>(1, (chunk.count - 1) / options_.element_size + 1);
  if (!options_.pacing.chunk) chunk.count = elements * options_.element_size;
  chunk.count = std::max(chunk.count, options_.element_size);
  auto report = simulate(best, size, {chunk, options_.pacing.ahead.value_or(0)});
  if (!report) return tl::unexpected(report.error());
  return ProfiledRun{pair.candidate, pair.shape, pair.protocol, best.setting, *std::move(report), why_first(picks)};
}

Result<std::optional<RunReport>> ProfiledRuns::run_against(Option& option, Bytes size, const planners::RunCosts& costs,
                                                           const std::optional<Picoseconds>& best) {
  const auto evaluate_pacing = [&](const Pacing& pacing, Picoseconds deadline) {
    return evaluate(option, size, pacing, deadline);
  };
  if (!best) return planners::find_best_pacing(*costs.chunks, size, costs.fixed, evaluate_pacing);
  // Hardly a cut makes up for loads and latencies that take longer than the best so far: where runs take seconds, no
  // others are tried.
  if (planners::exceeds_hop_budget(*costs.chunks, size) && costs.pipelined_time(size) >= best->seconds()) {
    return evaluate_pacing(planners::first_pacing(*costs.chunks, size, costs.fixed), *best);
  }
  return planners::find_best_pacing_beside(*best, *costs.chunks, size, costs.fixed, evaluate_pacing);
}

bool ProfiledRuns::competes(const planners::Candidate& candidate) const { return !is_nccl(candidate); }

double ProfiledRuns::floor(const planners::Candidate& candidate, Bytes size) {
  double payload = 0;
  for (const Pair& pair : pairs_of(candidate)) {
    payload = std::max(payload, static_cast<double>(pair.way->payload_ppm) / profile::whole_ppm);
  }
  return payload > 0 ? candidate.chunks.load_time(size) / payload : 0;
}

Result<double> ProfiledRuns::min_time(const planners::Candidate& candidate, Bytes size) {
  const std::vector<Pair> pairs = pairs_of(candidate);
  if (pairs.empty()) return tl::unexpected(no_costs(options_.profile, candidate.planner));
  const auto options = make_all_ready(pairs, size);
  if (!options) return tl::unexpected(options.error());
  double least = std::numeric_limits<double>::infinity();
  for (const Option* option : *options) least = std::min(least, costs_of(*option, size).min_time(size));
  return least;
}

double ProfiledRuns::expected_time(const planners::Candidate& candidate, Bytes size) {
  const auto options = make_all_ready(pairs_of(candidate), size);
  ESPALIER_CHECK(options.has_value(), "least_time gave a time");
  double least = std::numeric_limits<double>::infinity();
  for (const Option* option : *options) {
    least = std::min(least, costs_of(*option, size).pipelined_time(size));
  }
  return least;
}

Result<void> ProfiledRuns::run(planners::Trial& trial, Bytes size, const std::optional<Picoseconds>& best) {
  const planners::Candidate& candidate = *trial.candidate;
  const std::vector<Pair> pairs = pairs_of(candidate);
  if (pairs.empty()) return tl::unexpected(no_costs(options_.profile, candidate.planner));
  auto options = make_all_ready(pairs, size);
  if (!options) return tl::unexpected(options.error());
  const auto expected = [&](const Option* option) { return costs_of(*option, size).pipelined_time(size); };
  std::ranges::stable_sort(*options, {}, expected);
  std::optional<Picoseconds> shortest = best;
  std::optional<std::pair<Option*, Pacing>> fastest;
  for (Option* const option : *options) {
    const planners::RunCosts costs = costs_of(*option, size);
    if (shortest && planners::good_enough * costs.min_time(size) >= shortest->seconds()) continue;
    const auto found = run_against(*option, size, costs, shortest);
    if (!found) return tl::unexpected(found.error());
    if (!*found || (trial.run && (*found)->elapsed >= trial.run->elapsed)) continue;
    trial.run = **found;
    fastest = {option, {(*found)->chunk, (*found)->ahead}};
    if (!shortest || (*found)->elapsed < *shortest) shortest = (*found)->elapsed;
  }
  if (!fastest) {
    trial.min_time = std::max(trial.min_time, best->seconds());
    trial.run = tl::unexpected(planners::NoRun::cannot_win);
  } else if (!best || trial.run->elapsed < *best) {  // What loses beside others was not tried to its end.
    const std::scoped_lock lock(mutex_);
    fastest_.insert_or_assign({&candidate, size.count}, *fastest);
  }
  return {};
}

/// Requires: costs for the candidate.
Result<ProfiledRun> ProfiledRuns::run_fastest(const planners::Candidate& candidate, Bytes size) {
  const auto find = [&]() -> std::optional<std::pair<Option*, Pacing>> {
    const std::scoped_lock lock(mutex_);
    const auto known = fastest_.find({&candidate, size.count});
    return known == fastest_.end() ? std::nullopt : std::optional(known->second);
  };
  auto fastest = find();
  if (!fastest) {
    planners::Trial trial{&candidate, tl::unexpected(planners::NoRun::unsupported), 0};
    if (auto ran = run(trial, size, std::nullopt); !ran) return tl::unexpected(ran.error());
    fastest = find();
  }
  Option& option = *fastest->first;
  auto report = simulate(option, size, fastest->second);
  if (!report) return tl::unexpected(report.error());
  return ProfiledRun{&candidate, option.pair.shape, option.pair.protocol, option.setting, *std::move(report), {}};
}

Result<sim::Report> ProfiledRuns::run_in(const profile::CostedNetwork& setting, const planners::Candidate& candidate,
                                         Bytes size, const Pacing& pacing) {
  std::unique_lock lock(mutex_);
  const auto found = std::ranges::find_if(made_, [&](const auto& made) {
    return made.second.setting == &setting && made.second.pair.candidate == &candidate;
  });
  if (found == made_.end()) return tl::unexpected(no_costs(options_.profile, candidate.planner));
  lock.unlock();
  return simulate(found->second, size, pacing);
}

Result<ProfiledRun> ProfiledRuns::run(const std::string& algorithm, Bytes size) {
  if (algorithm == "auto") {
    const bool is_any = std::ranges::any_of(candidates_.made, [&](const auto& each) { return competes(each); });
    if (!is_any) return tl::unexpected(no_costs(options_.profile, algorithm));
    const auto choice = planners::choose(candidates_, size, *this);
    if (!choice) return tl::unexpected(choice.error());
    return run_fastest(*choice->candidate, size);
  }
  std::vector<Pair> pairs;
  for (const planners::Candidate& candidate : candidates_.made) {
    if (algorithm == "nccl" ? !is_nccl(candidate) : candidate.planner != algorithm) continue;
    const std::vector<Pair> of_candidate = pairs_of(candidate);
    pairs.insert(pairs.end(), of_candidate.begin(), of_candidate.end());
  }
  if (pairs.empty()) return tl::unexpected(no_costs(options_.profile, algorithm));
  if (algorithm == "nccl") prefer_pxn(pairs);
  return algorithm.starts_with("nccl") ? run_as_nccl(pairs, size) : run_fastest(*pairs.front().candidate, size);
}

}  // namespace espalier::forecast
