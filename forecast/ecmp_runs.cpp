#include "forecast/ecmp_runs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/parallel.h"
#include "forecast/entrants.h"
#include "schedule/ecmp.h"

namespace espalier::forecast {
namespace {

/// Results of one schedule in one setting: what is drawn once serves all their sizes.
using ResultsOfSchedule =
    std::map<std::pair<const planners::Candidate*, const profile::CostedNetwork*>, std::vector<std::size_t>>;

/// Times by result, of one seed.
Result<std::vector<Picoseconds>> run_seed(const std::vector<CandidateRun>& results,
                                          const std::vector<std::size_t>& places, const Topology& topology,
                                          const RunOptions& how, std::uint64_t seed) {
  const CandidateRun& first = results[places.front()];
  const profile::CostedNetwork* const setting = first.setting;
  const Topology& network = setting != nullptr ? setting->topology : topology;
  const Schedule drawn = hash_flows(first.candidate->schedule, network, seed);
  const auto simulator = sim::Simulator::make_unverified(drawn, network, how.endpoints(setting).engines());
  if (!simulator) return tl::unexpected(simulator.error());
  std::vector<Picoseconds> times;
  for (const std::size_t place : places) {
    const CandidateRun& result = results[place];
    const auto report = simulator->run(how.at(result.size, {result.report.chunk, result.report.ahead}, setting));
    if (!report) return tl::unexpected(report.error());
    times.push_back(report->elapsed);
  }
  return times;
}

}  // namespace

Result<void> draw_paths(std::vector<CandidateRun>& results, const Topology& topology, const RunOptions& how,
                        const EcmpDraws& draws, const std::function<void()>& on_run) {
  ResultsOfSchedule by_schedule;
  bool has_choice = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const planners::Candidate& candidate = *results[i].candidate;
    if (!whole_schedule(candidate)) {
      return fail(ErrorCode::unsupported, "--ecmp: the plan of " + candidate.planner + " is too large to be stored",
                  "name a smaller machine, or another planner with -a");
    }
    if (auto verified = planners::require_verified(candidate, topology); !verified) return verified;
    by_schedule[{&candidate, results[i].setting}].push_back(i);
    has_choice = has_choice || has_equal_paths(candidate.schedule, topology);
  }
  if (!has_choice) {
    return fail(ErrorCode::unsupported, "--ecmp: no switch of " + topology.name() + " has a choice of paths for these",
                "leave it out; it is for networks of two and more tiers of switches");
  }
  for (const auto& [key, places] : by_schedule) {
    std::vector<std::optional<Result<std::vector<Picoseconds>>>> by_seed(draws.count);
    run_parallel(draws.count, usable_threads(), [&](std::size_t i) {
      by_seed[i] = run_seed(results, places, topology, how, draws.first_seed + i);
      on_run();
    });
    for (std::size_t seed = 0; seed < draws.count; ++seed) {
      if (!*by_seed[seed]) return tl::unexpected(by_seed[seed]->error());
      for (std::size_t i = 0; i < places.size(); ++i) {
        auto& times = results[places[i]].ecmp;
        if (!times) times.emplace();
        const Picoseconds time = (**by_seed[seed])[i];
        times->expected += time.seconds() / draws.count;
        if (time <= times->worst) continue;
        times->worst = time;
        times->worst_seed = draws.first_seed + seed;
      }
    }
  }
  return {};
}

}  // namespace espalier::forecast
