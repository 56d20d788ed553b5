#include <fmt/format.h>

#include <algorithm>

#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/prediction_flags.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "cli/output/trace_file.h"
#include "cli/reports/simulation_output.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/simulate_scenario.h"
#include "planners/bounds/bound.h"
#include "planners/ring/ring_walks.h"
#include "sim/contention_free/walk_ring.h"

namespace espalier::cli {
namespace {

struct SimulateFlags : PredictionFlags {
  using PredictionFlags::PredictionFlags;

  TraceFlags trace;
  bool critical_path = false;
};

/// What is to be simulated: candidates with their bound, and the names of the table's columns.
struct Work {
  Collective collective;
  planners::Candidates candidates;
  std::vector<std::string> algorithms;
};

OrStop<Work> work_of_plan(const SimulateFlags& flags, Input& input) {
  Schedule& schedule = *input.schedule;
  const std::string name = schedule.algorithm.empty() ? "plan" : schedule.algorithm;
  if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  auto bound = planners::compute_bound(input.topology, schedule.collective);
  if (!bound) return stop(bound.error());
  Work work{schedule.collective, {}, {name}};
  work.candidates.bound = std::move(*bound);
  const planners::ChunkModel chunks(schedule, input.topology);
  work.candidates.made.push_back({name, std::move(schedule), chunks});
  return work;
}

OrStop<Work> work_of_topology(const Console& console, const SimulateFlags& flags, const Topology& topology,
                              Bytes least_size, bool has_profile) {
  const auto collective = flags.resolve_collective(topology);
  if (!collective) return usage(collective.error());
  const auto asked = flags.resolve_algorithms(has_profile);
  if (!asked) return usage(asked.error());
  const auto limits = flags.packing.resolve();
  if (!limits) return usage(limits.error());
  // Software adds to every hop, so with a profile low trees may win at any size.
  const Bytes least = has_profile ? Bytes{} : least_size;
  auto candidates = plan_candidates(console, topology, *collective, *asked, least, *limits);
  if (!candidates) return stop(candidates.error());
  Work work{*collective, std::move(*candidates), {}};
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
std::size_t fastest_of(const std::vector<CandidateRun>& results, std::size_t first, std::size_t count) {
  std::size_t best = first;
  for (std::size_t i = first + 1; i < first + count; ++i) {
    const auto time = results[i].report.elapsed, least = results[best].report.elapsed;
    if (time < least || (time == least && results[best].algorithm == "auto")) best = i;
  }
  return best;
}

Result<void> run_sizes(const Console& console, CandidateRuns& runs, Simulation& simulation) {
  Progress progress(console, "simulating", simulation.sizes.size() * simulation.algorithms.size());
  for (const Bytes size : simulation.sizes) {
    const std::size_t first = simulation.results.size();
    for (const std::string& algorithm : simulation.algorithms) {
      progress.step(fmt::format("{} {} B", algorithm, size.count));
      auto result = runs.run(algorithm, size);
      if (!result) return tl::unexpected(result.error());
      simulation.results.push_back(std::move(*result));
    }
    simulation.winners.push_back(fastest_of(simulation.results, first, simulation.algorithms.size()));
  }
  for (std::size_t i = 1; i < simulation.winners.size(); ++i) {
    const CandidateRun& before = simulation.results[simulation.winners[i - 1]];
    const CandidateRun& after = simulation.results[simulation.winners[i]];
    if (before.planner() == after.planner()) continue;
    const auto crossover = runs.find_crossover(before.planner(), after.planner(), before.size, after.size);
    if (!crossover) return tl::unexpected(crossover.error());
    simulation.crossovers.push_back(*crossover);
  }
  return {};
}

/// Runs the one result again with its timeline and critical path, which large sweeps do without.
Result<sim::Report> run_in_detail(const CandidateRun& result, const Topology& topology,
                                  const CandidateRuns::Options& how) {
  sim::Options options = how.at(result.size, {result.report.chunk, result.report.ahead});
  if (result.setting != nullptr) {
    options.launch = result.setting->endpoints.launch;
    options.payload_ppm = result.setting->endpoints.payload_ppm;
  }
  options.record_timeline = true;
  options.record_critical_path = true;
  return sim::simulate(result.candidate->schedule, result.setting != nullptr ? result.setting->topology : topology,
                       options, how.circumstances.endpoints.engines());
}

OrStop<void> show(const Console& console, const SimulateFlags& flags, const Simulation& simulation,
                  const CandidateRuns::Options& how) {
  const Topology& topology = *simulation.topology;
  CandidateRun last = simulation.results.back();
  if (!flags.trace.file.empty() || flags.critical_path) {
    auto report = run_in_detail(last, topology, how);
    if (!report) return stop(report.error());
    last.report = std::move(*report);
  }
  if (console.json) {
    auto document = simulation_json(simulation);
    if (flags.critical_path) document["critical_path"] = critical_path_json(last, topology);
    console.print(json_text(document));
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

/// Whether a ring alone is asked for on a large machine, and nothing that only its stored schedule gives.
bool walks_rings(const SimulateFlags& flags, const Input& input) {
  const auto kind = parse_collective(flags.collective.name);
  const auto limits = flags.packing.resolve();
  const bool walks = kind && (*kind == CollectiveKind::all_reduce || *kind == CollectiveKind::reduce_scatter ||
                              *kind == CollectiveKind::all_gather);
  return walks && !input.schedule && flags.algorithms == "ring" &&
         input.topology.rank_count() >= planners::least_walked_ranks && flags.collective.shares.empty() &&
         flags.trace.file.empty() && !flags.critical_path && flags.profile.name.empty() && limits && !limits->any();
}

/// Rings over all sizes, walked; false where they cannot be, or where the stored schedule would give something else and
/// can be had.
OrStop<bool> simulate_walks(const Console& console, const SimulateFlags& flags, const Topology& topology,
                            const Prediction& prediction) {
  const CandidateRuns::Options& options = prediction.options;
  const auto collective = flags.collective.resolve(topology);
  if (!collective) return usage(collective.error());
  auto bound = planners::compute_bound(topology, *collective);
  if (!bound) return stop(bound.error());
  const auto rings = planners::plan_ring_walks(topology, *collective);
  if (!rings) return stop(rings.error());
  const planners::Candidate candidate{"ring", Schedule(*collective, topology.name(), "ring"), rings->chunks};
  Simulation simulation;
  simulation.topology = &topology;
  simulation.collective = *collective;
  simulation.bound = std::move(*bound);
  simulation.circumstances = options.circumstances;
  simulation.type = prediction.type;
  simulation.element_size = options.element_size;
  simulation.algorithms = {"ring"};
  simulation.sizes = prediction.sizes;
  Progress progress(console, "simulating", prediction.sizes.size());
  for (const Bytes size : prediction.sizes) {
    progress.step(fmt::format("ring {} B", size.count));
    const Cut cut{options.cut.chunk.value_or(candidate.chunks.choose(size)), 0};
    auto walked =
        sim::simulate_rings(rings->walks, topology, options.at(size, cut), options.circumstances.endpoints.engines());
    if (!walked && walked.error().code == ErrorCode::unsupported) return false;
    if (!walked) return stop(walked.error());
    if (!walked->is_stored_form && topology.rank_count() < planners::most_stored_ranks) return false;
    simulation.winners.push_back(simulation.results.size());
    const std::uint64_t transfers = rings->walks.size() * rings->walks.front().steps() * topology.rank_count();
    simulation.results.push_back({size, "ring", &candidate, std::move(walked->report), {}, transfers});
  }
  console.print(console.json ? json_text(simulation_json(simulation)) : simulation_text(simulation));
  return true;
}

OrStop<void> simulate(const Console& console, const SimulateFlags& flags, Input& input) {
  const auto prediction = flags.resolve();
  if (!prediction) return usage(prediction.error());
  const CandidateRuns::Options& options = prediction->options;
  if (options.model == sim::ModelKind::link && walks_rings(flags, input)) {
    const auto walked = simulate_walks(console, flags, input.topology, *prediction);
    if (!walked) return tl::unexpected(walked.error());
    if (*walked) return {};
  }
  auto work = input.schedule ? work_of_plan(flags, input)
                             : work_of_topology(console, flags, input.topology, std::ranges::min(prediction->sizes),
                                                options.profile != nullptr);
  if (!work) return tl::unexpected(work.error());
  if ((!flags.trace.file.empty() || flags.critical_path) && prediction->sizes.size() * work->algorithms.size() != 1) {
    return usage({ErrorCode::invalid_input, "--trace and --critical-path are of one run",
                  "name one size with -s and one algorithm with -a"});
  }
  Simulation simulation;
  simulation.topology = &input.topology;
  simulation.collective = work->collective;
  simulation.bound = work->candidates.bound;
  simulation.model = options.model;
  simulation.circumstances = options.circumstances;
  if (options.profile) simulation.profile = options.profile->shown;
  simulation.type = prediction->type;
  simulation.element_size = options.element_size;
  simulation.algorithms = work->algorithms;
  simulation.sizes = prediction->sizes;
  simulation.refused = work->candidates.refused;
  std::erase_if(simulation.refused, [&](const planners::Refusal& refusal) {
    // That NCCL has no such algorithm here is no news where it has another.
    const bool is_of_many =
        is_nccl_algorithm(refusal.planner) && std::ranges::any_of(simulation.algorithms, is_nccl_algorithm);
    return flags.algorithms.find(refusal.planner) == std::string::npos && (is_of_many || !flags.algorithms.empty());
  });
  CandidateRuns runs(input.topology, work->candidates, options);
  if (const auto ran = run_sizes(console, runs, simulation); !ran) return stop(ran.error());
  return show(console, flags, simulation, options);
}

ExitCode run(const Console& console, const SimulateFlags& flags) {
  if (const auto conflict = flags.find_conflict()) return console.refuse_usage(*conflict);
  if (!flags.scenario.file.empty()) {
    ScenarioFlags scenario = flags.of_scenario();
    scenario.trace = flags.trace;
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
  const auto flags = std::make_shared<SimulateFlags>(PredictingVerb{"simulate",
                                                                    "Run",
                                                                    "ring,tree,packing,auto",
                                                                    "Comma-separated",
                                                                    "",
                                                                    {"--trace", "--trace-every", "--critical-path"},
                                                                    {"--trace", "--trace-every"},
                                                                    false,
                                                                    true});
  CLI::App* command =
      app.add_subcommand("simulate", "Predict times and bandwidths, the winner per size, and what limits it");
  flags->add_to(*command);
  flags->trace.add_to(*command, "one run");
  command->add_flag("--critical-path", flags->critical_path, "Print what the last byte waited for, of one run");
  command->footer(examples({"espalier simulate dgx1v-degraded all_gather -b 1K -e 1G -f 4",
                            "espalier simulate dgx1v all_reduce --without gpu0-gpu1 -s 64M",
                            "espalier simulate dgx1v all_reduce --slow gpu0-gpu3=0.25 -s 64M",
                            "espalier simulate cluster.yaml all_reduce -a all -b 1M -e 64M",
                            "espalier simulate plan.json -s 256M --trace trace.json",
                            "espalier simulate leaf-spine-64 all_to_all -b 1M -e 64M --model fair",
                            "espalier simulate dgx-a100-x2 all_gather -a packing -s 64K --critical-path",
                            "espalier simulate dgx-h100 all_reduce --protocol ll128 --jitter 2% --seed 7",
                            "espalier simulate dgx-h100 all_reduce --profile nccl-hopper -b 1K -e 1G",
                            "espalier simulate --scenario training-step --trace step.json",
                            "espalier simulate dgx-h100 --scenario job.yaml --seed 7 --json"}) +
                  "\nThe models are docs/simulator.md (link) and docs/fair.md (fair); of bound is the part of the "
                  "proven limit that is reached.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
