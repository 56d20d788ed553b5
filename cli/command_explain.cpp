#include <fmt/format.h>

#include <span>

#include "cli/algorithm_flags.h"
#include "cli/candidate_runs.h"
#include "cli/collective_flags.h"
#include "cli/commands.h"
#include "cli/condition_flags.h"
#include "cli/explanation.h"
#include "cli/flag_values.h"
#include "cli/inputs.h"
#include "cli/simulate_scenario.h"
#include "planners/bound.h"
#include "schedule/verify.h"

namespace espalier::cli {
namespace {

struct ExplainFlags {
  TopologyFlags input;
  std::string plan_topology;
  CollectiveFlags collective;
  std::string algorithms = "auto";
  std::string size = "64M";
  std::string model;  ///< Empty: link, or what the scenario says.
  ConditionFlags conditions;
  ScenarioFlags scenario;
};

Result<void> check_plan(const ExplainFlags& flags, const Input& input) {
  if (input.network_is_implied) {
    return fail(ErrorCode::invalid_input, "the plan carries no network, so its links have no rates",
                "give the topology with --topology");
  }
  const VerifyReport report = verify(*input.schedule, input.topology, 1);
  if (report.ok()) return {};
  const Breach& breach = report.breaches.front();
  return fail(ErrorCode::invalid_input,
              fmt::format("{} breaks rule {}: {}", flags.input.argument, to_string(breach.rule), breach.message),
              "espalier verify lists every breach");
}

/// The candidates, the plan as one more in front of them where one was given.
Result<Candidates> collect_candidates(const Console& console, const ExplainFlags& flags, Input& input,
                                      const Collective& collective, const std::vector<std::string>& algorithms) {
  auto candidates = plan_candidates(console, input.topology, collective, algorithms);
  if (!candidates) return candidates;
  if (input.schedule) {
    const ChunkModel chunks(*input.schedule, input.topology);
    candidates->made.insert(candidates->made.begin(), {flags.input.argument, std::move(*input.schedule), chunks});
  }
  if (candidates->made.empty()) return tl::unexpected(candidates->refused.front().error);
  return candidates;
}

/// How a run is simulated.
struct Circumstances {
  Bytes size;
  sim::ModelKind model = sim::ModelKind::link;
  sim::Circumstances of_run;
};

Result<Explanation> explain(const Topology& topology, const Candidate& candidate, const Circumstances& circumstances,
                            std::span<const Candidate> others) {
  const Schedule& schedule = candidate.schedule;
  Explanation explanation;
  explanation.topology = &topology;
  explanation.schedule = &schedule;
  explanation.size = circumstances.size;
  explanation.circumstances = circumstances.of_run;
  explanation.label = candidate.planner;
  auto bound = compute_bound(topology, schedule.collective);
  if (!bound) return tl::unexpected(bound.error());
  explanation.bound = std::move(*bound);
  explanation.proof = prove_cut(topology, schedule.collective, explanation.bound);
  explanation.loads = compute_loads(schedule, topology);
  explanation.shape = measure_travel(schedule);
  sim::Options options;
  options.size = circumstances.size;
  options.chunk = candidate.chunks.choose(circumstances.size);
  options.element_size = size_of(usual_type);
  options.model = circumstances.model;
  options.set(circumstances.of_run);
  auto limits = find_run_limits(schedule, topology, options, others, circumstances.of_run.endpoints.engines());
  if (!limits) return tl::unexpected(limits.error());
  explanation.limits = std::move(*limits);
  explanation.critical = sim::summarize_critical_path(explanation.limits.report, topology);
  if (explanation.bound.time_per_byte == 0) return explanation;
  explanation.classes = group_loads(schedule, topology, explanation.loads, explanation.bound);
  auto more = value_more_cables(topology, schedule.collective, explanation.bound);
  if (!more) return tl::unexpected(more.error());
  explanation.more = std::move(*more);
  return explanation;
}

ExitCode compare_and_explain(const Console& console, const Topology& topology, const Candidates& candidates,
                             const Circumstances& circumstances, bool is_plan) {
  CandidateRuns runs(topology, candidates,
                     {size_of(usual_type), std::nullopt, circumstances.model, circumstances.of_run});
  auto choice = choose(candidates, circumstances.size, runs.evaluator());
  if (!choice) return console.refuse(choice.error());
  auto explanation =
      explain(topology, is_plan ? candidates.made.front() : *choice->candidate, circumstances, candidates.made);
  if (!explanation) return console.refuse(explanation.error());
  explanation->trials = std::move(choice->trials);
  console.print(console.json ? explanation_json(*explanation).dump(2) + "\n" : explanation_text(*explanation));
  return ExitCode::ok;
}

/// A scenario names all but its topology itself.
ExitCode run_scenario(const Console& console, const ExplainFlags& flags) {
  const ExplainFlags usual;
  if (!flags.collective.name.empty() || !flags.plan_topology.empty() || flags.algorithms != usual.algorithms ||
      flags.size != usual.size) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "a scenario names its collectives, sizes and algorithms itself",
                                 "leave all but TOPOLOGY, --model, --seed and --json out"});
  }
  if (flags.conditions.any()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "a scenario says itself what endpoints add and how much hops jitter",
                                 "write 'endpoints:' and 'jitter:' in the scenario"});
  }
  ScenarioFlags scenario = flags.scenario;
  scenario.model = flags.model;
  scenario.seed = flags.conditions.seed;
  return explain_scenario(console, flags.input, scenario);
}

ExitCode run(const Console& console, const ExplainFlags& flags) {
  if (!flags.scenario.file.empty()) return run_scenario(console, flags);
  if (flags.input.argument.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "explain needs a TOPOLOGY or PLAN, or --scenario",
                                 "such as espalier explain dgx-h100 all_reduce"});
  }
  auto input = load_input(console, flags.input, flags.plan_topology);
  if (!input) return refuse(console, input.error());
  const bool is_plan = input->schedule.has_value();
  if (!is_plan && flags.collective.name.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "explain needs a COLLECTIVE for a topology",
                                 "such as espalier explain " + flags.input.argument + " all_reduce"});
  }
  if (is_plan && !flags.collective.name.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 flags.input.argument + " is a plan, which has its collective",
                                 "leave COLLECTIVE out"});
  }
  if (is_plan) {
    if (const auto checked = check_plan(flags, *input); !checked) return console.refuse(checked.error());
  }
  const auto collective = is_plan ? input->schedule->collective : flags.collective.resolve(input->topology);
  if (!collective) return console.refuse_usage(collective.error());
  const auto algorithms = parse_algorithms(flags.algorithms);
  if (!algorithms) return console.refuse_usage(algorithms.error());
  const auto size = parse_message_size(flags.size);
  if (!size) return console.refuse_usage(size.error());
  const auto model = sim::parse_model(flags.model.empty() ? "link" : flags.model);
  if (!model) {
    return console.refuse_usage({model.error().code, "--model: " + model.error().message, model.error().help});
  }
  const auto circumstances = flags.conditions.resolve();
  if (!circumstances) return console.refuse_usage(circumstances.error());
  const auto candidates = collect_candidates(console, flags, *input, *collective, *algorithms);
  if (!candidates) return console.refuse(candidates.error());
  return compare_and_explain(console, input->topology, *candidates, {*size, *model, *circumstances}, is_plan);
}

}  // namespace

void add_explain_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = app.add_subcommand(
      "explain", "The limit in words, what a plan does with the links, what limits its run, and what would help");
  flags->input.add_to(*command, "TOPOLOGY|PLAN", false);
  flags->input.add_without_to(*command);
  flags->collective.add_to(*command, false);
  command
      ->add_option(
          "-a,--algorithm", flags->algorithms,
          "Comma-separated, what a plan is compared with, or of which the fastest is explained: " + algorithm_names())
      ->option_text("NAMES (auto)");
  command->add_option("-s,--size", flags->size, "The message size to simulate")->option_text("SIZE (64M)");
  command->add_option("--model", flags->model, "How a link is shared: link (chunks take turns) or fair (max-min)")
      ->option_text("link|fair (link)");
  command->add_option("-t,--topology", flags->plan_topology, "Explain a plan on this topology instead of its own")
      ->option_text("FILE");
  command
      ->add_option("--scenario", flags->scenario.file,
                   "Explain a scenario instead: a YAML file, - or shipped scenario (docs/scenarios.md)")
      ->option_text("FILE");
  flags->conditions.add_to(*command, "Of the jitter; of all that a scenario draws, instead of its own");
  command->footer(
      examples({"espalier explain dgx1v-degraded all_gather", "espalier explain plan.json -s 1G",
                "espalier explain dgx-a100-x2 all_reduce -a ring --without box0.nic3",
                "espalier explain leaf-spine-64 all_to_all -s 16M --model fair",
                "espalier explain dgx-h100 all_reduce -a ring --protocol ll128 --jitter 2% --seed 7",
                "espalier explain --scenario training-step", "espalier explain --scenario link-dies --seed 3"}) +
      "\nThe limit is proven anew from its cut. What cables would buy is computed, and what a change would save\n"
      "simulated anew, not estimated.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
