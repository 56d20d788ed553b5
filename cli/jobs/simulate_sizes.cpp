#include "cli/jobs/simulate_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/jobs/plan_shown.h"
#include "cli/measured/error_ranges.h"
#include "cli/output/progress.h"
#include "forecast/entrants.h"

namespace espalier::cli {
namespace {

OrStop<SimulationWork> work_of_plan(const PredictionFlags& flags, Input& input) {
  if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  const Collective collective = input.schedule->collective;
  auto candidates = forecast::only_candidate(*std::move(input.schedule), input.topology);
  if (!candidates) return stop(candidates.error());
  candidates->made.front().is_verified = true;  // By check_plan.
  std::string name = candidates->made.front().planner;
  return SimulationWork{collective, *std::move(candidates), {std::move(name)}};
}

OrStop<SimulationWork> work_of_topology(const Console& console, const PredictionFlags& flags, const Input& input,
                                        const Prediction& prediction) {
  const auto collective = flags.resolve_collective(input.topology);
  if (!collective) return usage(collective.error());
  const auto asked = flags.resolve_algorithms(prediction.options.profile != nullptr);
  if (!asked) return usage(asked.error());
  const auto limits = flags.packing.resolve();
  if (!limits) return usage(limits.error());
  auto candidates =
      plan_shown(console, {.machine = &input.topology,
                           .collective = *collective,
                           .algorithms = *asked,
                           .sizes = prediction.sizes,
                           .how = prediction.options,
                           .forms = flags.ecmp == 0 ? forecast::PlanForms::any : forecast::PlanForms::schedules,
                           .lost = input.lost.get(),
                           .packing = *limits});
  if (!candidates) return stop(candidates.error());
  auto algorithms = forecast::made_algorithms(*asked, *candidates);
  if (!algorithms) return stop(algorithms.error());
  return SimulationWork{*collective, *std::move(candidates), *std::move(algorithms)};
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
  const forecast::RunOptions& options = prediction.options;
  auto found = [&] {
    Progress progress(console, "simulating", prediction.sizes.size() * work.algorithms.size());
    return forecast::answer(work.algorithms, prediction.sizes, work.candidates, runs,
                            [&](const std::string& what) { progress.step(what); });
  }();
  if (!found) return stop(found.error());
  Simulation simulation{*std::move(found)};
  simulation.topology = &topology;
  simulation.collective = work.collective;
  simulation.bound = work.candidates.bound;
  simulation.model = options.model;
  simulation.circumstances = options.circumstances;
  if (options.profile) simulation.profile = options.profile->shown;
  simulation.type = prediction.type;
  simulation.element_size = options.element_size;
  simulation.sizes = prediction.sizes;
  std::erase_if(simulation.refused, [&](const planners::Refusal& refusal) {
    // That NCCL has no such algorithm here is no news where it has another.
    const bool is_of_many = forecast::is_nccl_algorithm(refusal.planner) &&
                            std::ranges::any_of(simulation.algorithms, forecast::is_nccl_algorithm);
    return flags.algorithms.find(refusal.planner) == std::string::npos && (is_of_many || !flags.algorithms.empty());
  });
  if (options.profile) {
    auto errors = find_errors(topology, simulation.collective, simulation.sizes, options.profile.get(),
                              flags.profile.version, prediction.gpu);
    if (!errors) return stop(errors.error());
    simulation.errors = *std::move(errors);
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

std::string stored_form_text(const forecast::CandidateRun& result, const sim::Report& in_detail) {
  if (!forecast::is_walked(*result.candidate) || in_detail.elapsed == result.report.elapsed) return {};
  constexpr double micro = 1e6;
  return fmt::format(
      "the timeline is that of the stored {}, which deals whole shards to its rings and takes {:.2f} us; with a part "
      "of each shard for every ring, too many transfers to be stored, it takes {:.2f} us",
      result.planner(), micro * in_detail.elapsed.seconds(), micro * result.report.elapsed.seconds());
}

}  // namespace espalier::cli
