#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/prediction_flags.h"
#include "cli/jobs/simulate_sizes.h"
#include "cli/output/json_text.h"
#include "cli/output/trace_file.h"
#include "cli/reports/simulation_output.h"
#include "cli/scenarios/scenario_rows.h"
#include "cli/scenarios/simulate_scenario.h"
#include "cli/verbs/commands.h"

namespace espalier::cli {
namespace {

struct SimulateFlags : PredictionFlags {
  using PredictionFlags::PredictionFlags;

  TraceFlags trace;
  bool critical_path = false;
  SplitFlags splits;  ///< Of a scenario.
};

OrStop<void> show(const Console& console, const SimulateFlags& flags, const Simulation& simulation,
                  const forecast::RunOptions& how) {
  const Topology& topology = *simulation.topology;
  forecast::CandidateRun last = simulation.results.back();
  if (!flags.trace.file.empty() || flags.critical_path) {
    auto report = forecast::run_in_detail(last, topology, how);
    if (!report) return stop(report.error());
    if (const std::string why = stored_form_text(last, *report); !why.empty()) console.note(why);
    last.report = std::move(*report);
  }
  if (console.json) {
    auto document = simulation_json(simulation);
    if (flags.critical_path) document["critical_path"] = critical_path_json(last, topology);
    console.print(json_text(document));
  } else if (console.csv) {
    console.print_bytes(
        (flags.critical_path ? critical_path_table(last, topology) : simulation_table(simulation, true)).csv());
  } else {
    console.print(simulation_text(simulation));
    if (flags.critical_path) console.print("#\n" + critical_path_text(last, topology));
  }
  if (flags.trace.file.empty()) return {};
  const auto written = write_trace_file(console, flags.trace, *last.report.timeline);
  if (!written) return stop(written.error());
  console.note("trace: " + flags.trace.file + " (open it at ui.perfetto.dev)");
  return {};
}

OrStop<void> simulate(const Console& console, const SimulateFlags& flags, Input& input) {
  const auto prediction = flags.resolve(input);
  if (!prediction) return usage(prediction.error());
  const forecast::RunOptions& options = prediction->options;
  const auto work = find_work(console, flags, input, *prediction);
  if (!work) return tl::unexpected(work.error());
  if ((!flags.trace.file.empty() || flags.critical_path) && prediction->sizes.size() * work->algorithms.size() != 1) {
    return usage({ErrorCode::invalid_input, "--trace and --critical-path are of one run",
                  "name one size with -s and one algorithm with -a"});
  }
  forecast::RunOptions of_runs = options;
  if (prediction->sizes.size() == 1) of_runs.pacing.threads = usable_threads();  // else sizes are run side by side
  forecast::CandidateRuns runs(input.topology, work->candidates, of_runs);
  const auto simulation = simulate_sizes(console, flags, input.topology, *work, *prediction, runs);
  if (!simulation) return tl::unexpected(simulation.error());
  return show(console, flags, *simulation, options);
}

/// A row for every parallelism of a training step.
ExitCode simulate_splits(const Console& console, const SimulateFlags& flags, const ScenarioFlags& scenario) {
  if (!scenario.trace.file.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "--trace is of one run, and --split makes many",
                                 "write one parallelism into the scenario"});
  }
  const auto comparison = compare_splits(console, flags.input, scenario, flags.splits);
  if (!comparison) {
    const Stop& why = comparison.error();
    if (why.is_shown) return why.is_usage ? ExitCode::wrong_usage : ExitCode::check_failed;
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  if (console.csv) {
    console.print_bytes(splits_table(*comparison, true).csv());
  } else {
    console.print(console.json ? json_text(splits_json(*comparison)) : splits_text(*comparison));
  }
  return ExitCode::ok;
}

ExitCode run(const Console& console, const SimulateFlags& flags) {
  if (const auto conflict = flags.find_conflict()) return console.refuse_usage(*conflict);
  if (!flags.scenario.file.empty()) {
    ScenarioFlags scenario = flags.of_scenario();
    scenario.trace = flags.trace;
    if (flags.splits.are_given()) return simulate_splits(console, flags, scenario);
    return simulate_scenario(console, flags.input, scenario);
  }
  auto input = load_input(console, flags.input, flags.plan_topology);
  if (!input) return refuse(console, input.error());
  if (const auto conflict = flags.find_conflict(*input)) return console.refuse_usage(*conflict);
  const auto done = simulate(console, flags, *input);
  if (done) return ExitCode::ok;
  return done.error().is_usage ? console.refuse_usage(done.error().error) : console.refuse(done.error().error);
}

}  // namespace

void add_simulate_command(CLI::App& app, Session& session) {
  const auto flags =
      std::make_shared<SimulateFlags>(PredictingVerb{"simulate",
                                                     "Run",
                                                     "ring,tree,packing,auto",
                                                     "Comma-separated",
                                                     "",
                                                     {"--trace", "--trace-every", "--critical-path", "--ecmp", "--csv"},
                                                     {"--trace", "--trace-every", "--csv", "--split"},
                                                     false,
                                                     true});
  CLI::App* command =
      app.add_subcommand("simulate", "Predict times and bandwidths, the winner per size, and what limits it");
  flags->add_to(*command);
  add_csv_to(*command, session.console);
  flags->trace.add_to(*command, "one run");
  flags->splits.add_to(*command);
  command->add_flag("--critical-path", flags->critical_path,
                    "Print what the last byte waited for, of one run; with --csv it alone");
  command
      ->add_option(
          "--ecmp", flags->ecmp,
          "Beside the time on planned routes: mean and worst over so many draws of the paths that switches choose "
          "by hashing flows, from --seed on (docs/simulator.md)")
      ->option_text("N")
      ->check(CLI::Range(1, 1000));
  command->footer(examples({"espalier simulate dgx1v-degraded all_gather -b 1K -e 1G -f 4",
                            "espalier simulate dgx1v all_reduce --without gpu0-gpu1 -s 64M",
                            "espalier simulate dgx1v all_reduce --slow gpu0-gpu3=0.25 -s 64M",
                            "espalier simulate cluster.yaml all_reduce -a all -b 1M -e 64M",
                            "espalier simulate plan.json -s 256M --trace trace.json",
                            "espalier simulate leaf-spine-64 all_to_all -b 1M -e 64M --model fair",
                            "espalier simulate leaf-spine-64 all_to_all -a pairwise -s 64M --ecmp 16",
                            "espalier simulate dgx-a100-x2 all_gather -a packing -s 64K --critical-path",
                            "espalier simulate dgx-h100 all_reduce --protocol ll128 --jitter 2% --seed 7",
                            "espalier simulate dgx-h100 all_reduce --profile nccl-hopper -b 1K -e 1G",
                            "espalier simulate --scenario training-step --trace step.json",
                            "espalier simulate --scenario training-step --split tensor=1,2,4,8 --split pipeline=1,2",
                            "espalier simulate dgx-h100 --scenario job.yaml --seed 7 --json"}) +
                  "\nThe models are docs/simulator.md (link) and docs/fair.md (fair); of bound is the part of the "
                  "proven limit that is reached.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
