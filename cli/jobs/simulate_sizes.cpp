#include "cli/jobs/simulate_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/output/progress.h"
#include "forecast/walked_ring.h"
#include "planners/bounds/bound.h"
#include "planners/ring/ring_walks.h"

namespace espalier::cli {
namespace {

OrStop<SimulationWork> work_of_plan(const PredictionFlags& flags, Input& input) {
  Schedule& schedule = *input.schedule;
  const std::string name = schedule.algorithm.empty() ? "plan" : schedule.algorithm;
  if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  auto bound = planners::compute_bound(input.topology, schedule.collective);
  if (!bound) return stop(bound.error());
  SimulationWork work{schedule.collective, {}, {name}};
  work.candidates.bound = std::move(*bound);
  const planners::ChunkModel chunks(schedule, input.topology);
  work.candidates.made.push_back({name, std::move(schedule), chunks});
  return work;
}

OrStop<SimulationWork> work_of_topology(const Console& console, const PredictionFlags& flags, const Input& input,
                                        const Prediction& prediction) {
  const auto& profile = prediction.options.profile;
  const bool has_profile = profile != nullptr;
  const Topology& topology = input.topology;
  const auto collective = flags.resolve_collective(topology);
  if (!collective) return usage(collective.error());
  const auto asked = flags.resolve_algorithms(has_profile);
  if (!asked) return usage(asked.error());
  const auto limits = flags.packing.resolve();
  if (!limits) return usage(limits.error());
  // Software adds to every hop, so with a profile low trees may win at any size.
  const Bytes least = has_profile ? Bytes{} : std::ranges::min(prediction.sizes);
  std::optional<planners::Candidate> ring;
  const auto planners = planners_for(*asked);
  if (flags.ecmp == 0 && !limits->any() &&
      std::ranges::find(planners, "ring", &planners::Planner::name) != planners.end()) {
    ring = forecast::find_walked_ring(topology, *collective, prediction.sizes, prediction.options);
  }
  auto candidates = plan_candidates(console, topology, *collective, *asked, least,
                                    {.limits = *limits,
                                     .may_be_unstored = !has_profile && flags.ecmp == 0,
                                     .lost = input.lost.get(),
                                     .paths = paths_of(profile),
                                     .ring = std::move(ring)});
  if (!candidates) return stop(candidates.error());
  SimulationWork work{*collective, std::move(*candidates), {}};
  for (const std::string& name : *asked) {
    const auto is_of_nccl = [](const planners::Candidate& made) { return is_nccl_algorithm(made.planner); };
    const bool made = name == "auto"   ? !std::ranges::all_of(work.candidates.made, is_of_nccl)
                      : name == "nccl" ? std::ranges::any_of(work.candidates.made, is_of_nccl)
                                       : work.candidates.find(name) != nullptr;
    if (made) work.algorithms.push_back(name);
  }
  if (work.algorithms.empty()) {
    if (work.candidates.refused.empty()) {
      return stop({ErrorCode::unsupported, "no planner makes this collective on this topology", ""});
    }
    return stop(work.candidates.refused.front().error);
  }
  return work;
}

/// The fastest of the results at one size. "auto" repeats one of its planners: that one, where it was named itself.
std::size_t fastest_of(const std::vector<forecast::CandidateRun>& results, std::size_t first, std::size_t count) {
  std::size_t best = first;
  for (std::size_t i = first + 1; i < first + count; ++i) {
    const auto time = results[i].report.elapsed, least = results[best].report.elapsed;
    if (time < least || (time == least && results[best].algorithm == "auto")) best = i;
  }
  return best;
}

/// How many sizes to simulate at once: each holds what is under way.
unsigned threads_for(const planners::Candidates& candidates) {
  constexpr std::size_t most_transfers = 32'000'000;
  std::size_t transfers = 1;
  for (const planners::Candidate& candidate : candidates.made) {
    transfers = std::max(transfers, candidate.schedule.transfers.size());
  }
  return static_cast<unsigned>(std::clamp<std::size_t>(most_transfers / transfers, 1, usable_threads()));
}

/// Moves the algorithms whose plans cannot be run so to those that are refused; the others are shown. Errors: those of
/// runs; that of the first such algorithm where no other is left.
Result<void> refuse_columns(Simulation& simulation,
                            const std::vector<std::vector<Result<forecast::CandidateRun>>>& by_size,
                            std::vector<bool>& is_refused) {
  std::vector<planners::Refusal> refused;
  is_refused.assign(simulation.algorithms.size(), false);
  for (const auto& results : by_size) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i]) continue;
      if (results[i].error().code != ErrorCode::unsupported) return tl::unexpected(results[i].error());
      if (!is_refused[i]) refused.push_back({simulation.algorithms[i], results[i].error()});
      is_refused[i] = true;
    }
  }
  if (refused.size() == simulation.algorithms.size()) return tl::unexpected(refused.front().error);
  std::erase_if(simulation.algorithms, [&](const std::string& name) {
    return std::ranges::find(refused, name, &planners::Refusal::planner) != refused.end();
  });
  std::ranges::move(refused, std::back_inserter(simulation.refused));
  return {};
}

Result<void> run_sizes(const Console& console, forecast::CandidateRuns& runs, Simulation& simulation,
                       unsigned threads) {
  Progress progress(console, "simulating", simulation.sizes.size() * simulation.algorithms.size());
  std::vector<std::vector<Result<forecast::CandidateRun>>> by_size(simulation.sizes.size());
  run_parallel(by_size.size(), threads, [&](std::size_t i) {
    // The largest take longest and come first.
    const std::size_t place = by_size.size() - 1 - i;
    const Bytes size = simulation.sizes[place];
    for (const std::string& algorithm : simulation.algorithms) {
      progress.step(fmt::format("{} {} B", algorithm, size.count));
      by_size[place].push_back(runs.run(algorithm, size));
    }
  });
  std::vector<bool> is_refused;
  if (auto checked = refuse_columns(simulation, by_size, is_refused); !checked) return checked;
  for (auto& results : by_size) {
    const std::size_t first = simulation.results.size();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!is_refused[i]) simulation.results.push_back(*std::move(results[i]));
    }
    simulation.winners.push_back(fastest_of(simulation.results, first, simulation.algorithms.size()));
  }
  for (std::size_t i = 1; i < simulation.winners.size(); ++i) {
    const forecast::CandidateRun& before = simulation.results[simulation.winners[i - 1]];
    const forecast::CandidateRun& after = simulation.results[simulation.winners[i]];
    if (before.planner() == after.planner()) continue;
    const auto crossover = runs.find_crossover(before.planner(), after.planner(), before.size, after.size);
    if (!crossover) return tl::unexpected(crossover.error());
    simulation.crossovers.push_back(*crossover);
  }
  return {};
}

/// Rings that are walked, as their planner stores them.
Result<planners::Candidate> find_stored(const planners::Candidate& walked, const Topology& topology) {
  const auto planner = planners::find_planner(walked.planner);
  if (!planner) return tl::unexpected(planner.error());
  const Bound bound = walked.schedule.bound.value_or(Bound{});
  auto made = planners::make_candidates_by(*planner, topology, walked.collective(), bound);
  if (!made) return tl::unexpected(made.error());
  return std::move(made->back());
}

}  // namespace

OrStop<SimulationWork> find_work(const Console& console, const PredictionFlags& flags, Input& input,
                                 const Prediction& prediction) {
  if (input.schedule) return work_of_plan(flags, input);
  return work_of_topology(console, flags, input, prediction);
}

OrStop<Simulation> simulate_sizes(const Console& console, const PredictionFlags& flags, const Topology& topology,
                                  const SimulationWork& work, const Prediction& prediction,
                                  forecast::CandidateRuns& runs) {
  const forecast::CandidateRuns::Options& options = prediction.options;
  Simulation simulation;
  simulation.topology = &topology;
  simulation.collective = work.collective;
  simulation.bound = work.candidates.bound;
  simulation.model = options.model;
  simulation.circumstances = options.circumstances;
  if (options.profile) simulation.profile = options.profile->shown;
  simulation.type = prediction.type;
  simulation.element_size = options.element_size;
  simulation.algorithms = work.algorithms;
  simulation.sizes = prediction.sizes;
  simulation.refused = work.candidates.refused;
  std::erase_if(simulation.refused, [&](const planners::Refusal& refusal) {
    // That NCCL has no such algorithm here is no news where it has another.
    const bool is_of_many =
        is_nccl_algorithm(refusal.planner) && std::ranges::any_of(simulation.algorithms, is_nccl_algorithm);
    return flags.algorithms.find(refusal.planner) == std::string::npos && (is_of_many || !flags.algorithms.empty());
  });
  if (const auto ran = run_sizes(console, runs, simulation, threads_for(work.candidates)); !ran) {
    return stop(ran.error());
  }
  if (prediction.draws.count > 0) {
    Progress progress(console, "drawing paths", simulation.algorithms.size() * prediction.draws.count);
    simulation.draws = prediction.draws;
    const auto drawn = forecast::draw_paths(simulation.results, topology, options, prediction.draws,
                                            [&] { progress.step("paths drawn"); });
    if (!drawn) return stop(drawn.error());
  }
  return simulation;
}

Result<sim::Report> run_in_detail(const forecast::CandidateRun& result, const Topology& topology,
                                  const forecast::CandidateRuns::Options& how) {
  sim::Options options = how.at(result.size, {result.report.chunk, result.report.ahead});
  if (result.setting != nullptr) {
    options.launch = result.setting->endpoints.launch;
    options.payload_ppm = result.setting->endpoints.payload_ppm;
  }
  options.record_timeline = true;
  options.record_critical_path = true;
  const planners::Candidate* candidate = result.candidate;
  std::optional<planners::Candidate> stored;
  if (!candidate->walks.empty() && topology.rank_count() < planners::most_stored_ranks) {
    auto found = find_stored(*candidate, topology);
    if (!found) return tl::unexpected(found.error());
    candidate = &stored.emplace(*std::move(found));
  }
  const auto simulator =
      result.setting != nullptr
          ? forecast::CandidateSimulator::make(*candidate, result.setting->topology,
                                               result.setting->endpoints.engines())
          : forecast::CandidateSimulator::make(*candidate, topology, how.circumstances.endpoints.engines());
  if (!simulator) return tl::unexpected(simulator.error());
  return simulator->run(options);
}

std::string stored_form_text(const forecast::CandidateRun& result, const sim::Report& in_detail) {
  if (result.candidate->walks.empty() || in_detail.elapsed == result.report.elapsed) return {};
  constexpr double micro = 1e6;
  return fmt::format(
      "the timeline is that of the stored {}, which deals whole shards to its rings and takes {:.2f} us; with a part "
      "of each shard for every ring, too many transfers to be stored, it takes {:.2f} us",
      result.planner(), micro * in_detail.elapsed.seconds(), micro * result.report.elapsed.seconds());
}

}  // namespace espalier::cli
