#include "cli/jobs/design_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/flags/algorithm_flags.h"
#include "cli/jobs/plan_shown.h"
#include "cli/output/progress.h"
#include "cli/reports/describe_bound.h"
#include "forecast/candidate_runs.h"
#include "forecast/degrade.h"
#include "scenario/report/report.h"

namespace espalier::cli {
namespace {

OrStop<DesignCollective> run_collective(const Console& console, const Topology& topology, CollectiveKind kind,
                                        const DesignQuestions& questions,
                                        const std::shared_ptr<const forecast::Software>& profile,
                                        const std::string& gpu) {
  const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
  if (!collective) return stop(collective.error());
  const forecast::Question question{.machine = &topology,
                                    .collective = *collective,
                                    .algorithms = questions.algorithms,
                                    .sizes = questions.sizes,
                                    .how = {.profile = profile},
                                    .forms = forecast::PlanForms::parts};
  const auto candidates = plan_shown(console, question);
  if (!candidates) return stop(candidates.error());
  if (candidates->made.empty()) return stop(candidates->refused.front().error);
  if (forecast::is_nccl_algorithm(questions.algorithm) && !profile) {
    return usage({ErrorCode::invalid_input,
                  "-a: " + questions.algorithm + " needs a profile, which says what NCCL would pick, and " +
                      topology.name() + " names none",
                  "such as --profile nccl-hopper"});
  }
  DesignCollective result{kind, std::nullopt, {}, {}};
  auto errors = find_errors(topology, *collective, questions.sizes, profile.get(), questions.profile.version, gpu);
  if (!errors) return stop(errors.error());
  result.errors = *std::move(errors);
  const Rational& bound = candidates->bound.time_per_byte;
  if (const auto algbw = algbw_of(bound)) result.bound_busbw = *algbw * to_double(collective->busbw_factor());
  forecast::CandidateRuns runs(topology, *candidates, question.how);
  Progress progress(console, fmt::format("simulating {}", topology.name()), questions.sizes.size());
  for (const Bytes size : questions.sizes) {
    progress.step(fmt::format("{} {} B", to_string(kind), size.count));
    const auto run = runs.run(questions.algorithm, size);
    if (!run) return stop(run.error());
    result.runs.push_back({size, run->report.elapsed.seconds(), run->report.busbw(*collective),
                           run->report.of_bound(bound, *collective), run->by()});
  }
  return result;
}

OrStop<DesignFailures> fail_each(const Console& console, const Topology& topology, CollectiveKind kind) {
  const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
  if (!collective) return stop(collective.error());
  Progress progress(console, fmt::format("failing {}", topology.name()), 0);
  const auto degradation = forecast::degrade({.machine = &topology, .collective = *collective, .algorithms = {}}, {},
                                             [&](const std::string& what, std::size_t, std::size_t total) {
                                               progress.expect(total);
                                               progress.step(what);
                                             });
  if (!degradation) return stop(degradation.error());
  DesignFailures failures;
  for (const forecast::Damage& damage : degradation->damages) {
    const std::size_t count = damage.failure.alike.size();
    failures.all += count;
    if (!damage.outlook) {
      failures.cut_off += count;
    } else if (damage.bound_loss <= 0) {
      failures.harmless += count;
    } else if (damage.bound_loss > failures.loss) {
      failures.loss = damage.bound_loss;
      failures.worst = fmt::format("{} ({})", damage.failure.name, damage.failure.what);
    }
  }
  return failures;
}

OrStop<DesignScenario> run_on(const Console& console, const TopologyFlags& flags, const ScenarioFlags& scenario) {
  DesignScenario result;
  const ExitCode code =
      with_scenario_run(console, flags, scenario,
                        [&](const scenario::Scenario& what, const scenario::JobReport& report, const std::string&) {
                          const scenario::RankSummary ranks = summarize_ranks(what.job, report);
                          result = {what.name,  report.elapsed, ranks.compute, ranks.exposed, ranks.waiting,
                                    ranks.idle, std::nullopt,   std::nullopt,  what.training};
                          if (!what.training) return;
                          result.tokens_per_second = what.training->tokens_per_second(report.elapsed);
                          result.model_flops_utilisation = what.training->model_flops_utilisation(report.elapsed);
                        });
  if (code == ExitCode::ok) return result;
  return tl::unexpected(Stop{{}, code == ExitCode::wrong_usage, true});
}

}  // namespace

OrStop<Design> examine_design(const Console& console, const TopologyFlags& flags, const DesignQuestions& questions) {
  const auto machine = load_machine(console, flags);
  if (!machine) return tl::unexpected(Stop{machine.error().error, machine.error().is_usage, machine.error().shown});
  const auto profile = questions.profile.resolve({}, machine->profile);
  if (!profile) return usage(profile.error());
  const Topology& topology = machine->topology;
  Design design{flags.argument, topology.rank_count(), topology.link_count(), *profile ? (*profile)->shown : "", {},
                std::nullopt,   std::nullopt};
  for (const CollectiveKind kind : questions.collectives) {
    auto collective = run_collective(console, topology, kind, questions, *profile, machine->gpu);
    if (!collective) return tl::unexpected(collective.error());
    design.collectives.push_back(*std::move(collective));
  }
  if (questions.fails) {
    auto failures = fail_each(console, topology, questions.collectives.front());
    if (!failures) return tl::unexpected(failures.error());
    design.failures = *std::move(failures);
  }
  if (!questions.scenario.file.empty()) {
    ScenarioFlags asked = questions.scenario;
    asked.profile = questions.profile;
    auto scenario = run_on(console, flags, asked);
    if (!scenario) return tl::unexpected(scenario.error());
    design.scenario = *std::move(scenario);
  }
  return design;
}

}  // namespace espalier::cli
