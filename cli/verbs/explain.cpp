#include <algorithm>
#include <optional>
#include <span>

#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/prediction_flags.h"
#include "cli/jobs/plan_shown.h"
#include "cli/measured/explain_measured.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "cli/reports/explanation.h"
#include "cli/scenarios/simulate_scenario.h"
#include "cli/verbs/commands.h"
#include "forecast/candidate_runs.h"
#include "forecast/entrants.h"
#include "planners/bounds/bound.h"
#include "planners/ring/ring_walks.h"

namespace espalier::cli {
namespace {

/// The candidates, the plan as one more in front of them where one was given.
OrStop<planners::Candidates> collect_candidates(const Console& console, const PredictionFlags& flags, Input& input,
                                                const Prediction& prediction) {
  if (input.schedule) {
    if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  }
  const auto collective = input.schedule ? input.schedule->collective : flags.resolve_collective(input.topology);
  if (!collective) return usage(collective.error());
  const auto algorithms = flags.resolve_algorithms(prediction.options.profile != nullptr);
  if (!algorithms) return usage(algorithms.error());
  const auto limits = flags.packing.resolve();
  if (!limits) return usage(limits.error());
  auto candidates =
      plan_shown(console, {.machine = &input.topology,
                           .collective = *collective,
                           .algorithms = *algorithms,
                           .sizes = prediction.sizes,
                           .how = prediction.options,
                           .forms = input.schedule ? forecast::PlanForms::schedules : forecast::PlanForms::parts,
                           .lost = input.lost.get(),
                           .packing = *limits});
  if (!candidates) return stop(candidates.error());
  std::erase_if(candidates->made, [&](const planners::Candidate& made) {
    if (!forecast::is_walked(made)) return false;
    candidates->refused.push_back(
        {made.planner,
         {ErrorCode::unsupported, "rings of this many ranks are walked, and nothing of that is explained",
          "simulate shows their times"}});
    return true;
  });
  if (input.schedule) {
    const planners::ChunkModel chunks(*input.schedule, input.topology);
    candidates->made.insert(candidates->made.begin(), {flags.input.argument, std::move(*input.schedule), chunks});
  }
  if (candidates->made.empty()) return stop(candidates->refused.front().error);
  return *std::move(candidates);
}

/// What is explained, and how it runs.
struct Explained {
  const planners::Candidate* candidate = nullptr;
  Pacing pacing;
  const profile::CostedNetwork* setting = nullptr;  ///< Under a profile.
  std::string protocol;                             ///< Under a profile.
  std::string why;                                  ///< What NCCL chose it by, if it did.
  std::vector<planners::Trial> trials;
};

Result<Explanation> explain(const Topology& topology, const Explained& explained, const Prediction& prediction,
                            const planners::Candidates& candidates, forecast::CandidateRuns& runs) {
  std::span<const planners::Candidate> others = candidates.made;
  const planners::Candidate& candidate = *explained.candidate;
  const forecast::RunOptions& options = prediction.options;
  Explanation explanation;
  explanation.topology = &topology;
  explanation.schedule = forecast::described_schedule(candidate);
  explanation.candidate = &candidate;
  explanation.size = prediction.sizes.front();
  explanation.type = prediction.type;
  explanation.circumstances = options.circumstances;
  explanation.label = candidate.planner;
  planners::PlanContext known;
  known.solution = candidates.solution;
  const Collective& collective = candidate.collective();
  auto priced = planners::compute_priced_bound(topology, collective, known);
  if (!priced) return tl::unexpected(priced.error());
  explanation.bound = std::move(priced->bound);
  explanation.prices = std::move(priced->prices);
  explanation.proof = planners::prove_cut(topology, collective, explanation.bound);
  explanation.loads = forecast::loads_of(candidate, topology);
  explanation.shape = planners::measure_travel(candidate.schedule);
  const sim::Options how = options.at(explanation.size, explained.pacing, explained.setting);
  if (explained.setting != nullptr) {
    explanation.profile = options.profile->shown + " with " + explained.protocol;
    explanation.why = explained.why;
    others = {};  // they would have protocols of their own
  }
  // What ran for the choice is known, but for jitter.
  const bool are_known = others.size() > 1 && how.conditions.jitter_ppm == 0;
  auto limits = forecast::find_run_limits(
      candidate, explained.setting != nullptr ? explained.setting->topology : topology, how, others,
      options.endpoints(explained.setting).engines(), usable_threads(), are_known ? &runs : nullptr);
  if (!limits) return tl::unexpected(limits.error());
  explanation.limits = std::move(*limits);
  explanation.critical = sim::summarize_critical_path(explanation.limits.report, topology);
  if (explanation.bound.time_per_byte == 0) return explanation;
  explanation.classes = planners::group_loads(*explanation.schedule, topology, explanation.loads, explanation.bound);
  auto more =
      planners::value_more_cables(topology, collective, explanation.bound, explanation.prices, usable_threads());
  if (!more) return tl::unexpected(more.error());
  explanation.more = std::move(*more);
  return explanation;
}

/// What each takes, NCCL's own too.
Result<std::vector<planners::Trial>> run_each(forecast::CandidateRuns& runs, const planners::Candidates& candidates,
                                              Bytes size) {
  std::vector<std::optional<Result<forecast::CandidateRun>>> ran(candidates.made.size());
  run_parallel(ran.size(), usable_threads(),
               [&](std::size_t i) { ran[i] = runs.run(candidates.made[i].planner, size); });
  std::vector<planners::Trial> trials;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const Result<forecast::CandidateRun>& run = *ran[i];
    if (!run) return tl::unexpected(run.error());
    trials.push_back({&candidates.made[i], static_cast<const RunReport&>(run->report), 0});
  }
  std::ranges::stable_sort(trials, {}, [](const planners::Trial& trial) { return trial.run->elapsed; });
  return trials;
}

/// The plan where one was given, what NCCL takes where only that competes, else the fastest.
Result<Explained> pick(forecast::CandidateRuns& runs, const planners::Candidates& candidates, Bytes size, bool is_plan,
                       bool has_profile) {
  Explained explained;
  std::string name = candidates.made.front().planner;
  const bool is_nccl = std::ranges::all_of(
      candidates.made, [](const planners::Candidate& made) { return forecast::is_nccl_algorithm(made.planner); });
  if (is_nccl) {
    if (!is_plan) name = "nccl";
  } else {
    auto choice = runs.choose(size);
    if (!choice) return tl::unexpected(choice.error());
    explained.trials = std::move(choice->trials);
    if (!is_plan) name = choice->candidate->planner;
  }
  if (has_profile) {
    auto trials = run_each(runs, candidates, size);
    if (!trials) return tl::unexpected(trials.error());
    explained.trials = *std::move(trials);
  }
  auto run = runs.run(name, size);
  if (!run) return tl::unexpected(run.error());
  explained.candidate = run->candidate;
  explained.pacing = {run->report.chunk, run->report.ahead};
  explained.setting = run->setting;
  explained.protocol = run->protocol;
  explained.why = run->why;
  return explained;
}

ExitCode compare_and_explain(const Console& console, const Topology& topology, const planners::Candidates& candidates,
                             const Prediction& prediction, bool is_plan) {
  forecast::CandidateRuns runs(topology, candidates, prediction.options);
  std::optional<Progress> progress(std::in_place, console, "simulating what was planned", 0);
  auto explained = pick(runs, candidates, prediction.sizes.front(), is_plan, prediction.options.profile != nullptr);
  if (!explained) return console.refuse(explained.error());
  progress.emplace(console, "simulating single changes", 0);
  auto explanation = explain(topology, *explained, prediction, candidates, runs);
  progress.reset();
  if (!explanation) return console.refuse(explanation.error());
  explanation->trials = std::move(explained->trials);
  if (console.csv) {
    console.print_bytes(improvements_table(*explanation).csv());
    return ExitCode::ok;
  }
  console.print(console.json ? json_text(explanation_json(*explanation)) : explanation_text(*explanation));
  return ExitCode::ok;
}

/// Whether simulate walks rings there that are stored in another form.
bool is_walked_unlike(const PredictionFlags& flags, const Topology& topology) {
  const std::size_t ranks = topology.rank_count();
  if (ranks < planners::min_walked_ranks || ranks >= planners::min_symmetric_ranks) return false;
  const auto collective = flags.resolve_collective(topology);
  if (!collective) return false;
  const auto rings = planners::plan_ring_walks(topology, *collective);
  return rings && (rings->is_dealt || ranks >= planners::max_stored_ranks);
}

ExitCode run(const Console& console, const PredictionFlags& flags) {
  if (const auto conflict = flags.find_conflict()) return console.refuse_usage(*conflict);
  if (!flags.scenario.file.empty()) return explain_scenario(console, flags.input, flags.of_scenario());
  auto input = load_input(console, flags.input, flags.plan_topology);
  if (!input) return refuse(console, input.error());
  if (const auto conflict = flags.find_conflict(*input)) return console.refuse_usage(*conflict);
  const auto prediction = flags.resolve(*input);
  if (!prediction) return console.refuse_usage(prediction.error());
  const bool is_plan = input->schedule.has_value();
  if (!is_plan && flags.algorithms == "ring" && !prediction->options.profile &&
      is_walked_unlike(flags, input->topology)) {
    console.warn("simulate walks rings of this many ranks; what is explained is the schedule that can be stored");
  }
  const auto candidates = collect_candidates(console, flags, *input, *prediction);
  if (!candidates) {
    const Stop& why = candidates.error();
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  return compare_and_explain(console, input->topology, *candidates, *prediction, is_plan);
}

}  // namespace

void add_explain_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<PredictionFlags>(
      PredictingVerb{"explain",
                     "Explain",
                     "auto",
                     "Comma-separated, what a plan is compared with, or of which the fastest is explained",
                     "64M",
                     {"--csv"},
                     {"--csv"},
                     true,
                     true});
  const auto measured = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "explain", "The limit in words, what a plan does with the links, what limits its run, and what would help");
  flags->add_to(*command);
  command
      ->add_option("--measured", *measured,
                   "Explain what was measured instead: a timeline of run, or a table of nccl-tests under a profile")
      ->option_text("FILE");
  add_csv_to(*command, session.console);
  command->footer(
      examples({"espalier explain dgx1v-degraded all_gather", "espalier explain plan.json -s 1G",
                "espalier explain dgx-a100-x2 all_reduce -a ring --without box0.nic3",
                "espalier explain leaf-spine-64 all_to_all -s 16M --model fair",
                "espalier explain dgx1v all_gather -a packing --max-trees 2 -s 4M --chunk 64K -d bfloat16",
                "espalier explain dgx-h100 all_reduce -a ring --protocol ll128 --jitter 2% --seed 7",
                "espalier explain dgx-h100 all_reduce -a nccl --profile nccl-hopper -s 8M",
                "espalier explain dgx-h100 all_reduce --measured all_reduce_perf.log --profile nccl-hopper",
                "espalier explain dgx-h100 --measured all_reduce_perf.log",
                "espalier explain plan.json --measured run-trace.json", "espalier explain --scenario training-step",
                "espalier explain --scenario link-dies --seed 3"}) +
      "\n--csv prints what single changes would save. The limit is proven anew from its cut. What cables would buy is "
      "computed, and what a change would save\n"
      "simulated anew, not estimated.");
  command->callback([flags, measured, command, &session] {
    session.run = [flags, measured, command, &session] {
      const bool is_measured = !measured->empty() && flags->scenario.file.empty();
      return is_measured ? explain_measured(session.console, {*flags, *command, *measured})
                         : run(session.console, *flags);
    };
  });
}

}  // namespace espalier::cli
