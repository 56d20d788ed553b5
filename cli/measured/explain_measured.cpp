#include "cli/measured/explain_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/measured_beside.h"
#include "cli/jobs/plan_shown.h"
#include "cli/jobs/predict_rows.h"
#include "cli/jobs/simulate_sizes.h"
#include "cli/measured/measured_explanation.h"
#include "cli/measured/measured_path.h"
#include "cli/measured/too_fast_for.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "compare/statistics.h"

namespace espalier::cli {
namespace {

constexpr std::array<std::string_view, 3> of_both = {"COLLECTIVE", "--measured", "--csv"};
constexpr std::array<std::string_view, 6> of_tables = {"--algorithm", "--size",         "--protocol",
                                                       "--profile",   "--nccl-version", "--paths"};

Mode mode_of_file(bool is_timeline, bool is_plan) {
  constexpr std::array<std::string_view, 1> of_plans = {"--topology"};
  constexpr std::array<std::string_view, 1> of_machines = {"--root"};
  Mode mode{"a table of measured times", "it says what was measured", join_options({topology_options, of_both}), {}};
  if (is_timeline) {
    mode.what = "a timeline";
    mode.why = "its spans say what it took";
  } else {
    mode.options = join_options({mode.options, of_tables});
  }
  mode.options = join_options({mode.options, is_plan ? of_plans : of_machines});
  return mode;
}

/// The median of what was measured at each size; only the one of -s where it was given.
OrStop<std::map<std::int64_t, double>> times_by_size(const MeasuredQuestion& question,
                                                     const compare::Measurements& rows) {
  std::map<std::int64_t, std::vector<double>> found;
  for (const compare::Measurement& row : rows.rows) {
    if (row.size.count > 0 && row.seconds > 0) found[row.size.count].push_back(row.seconds);
  }
  std::map<std::int64_t, double> times;
  for (const auto& [size, seconds] : found) times[size] = compare::median(seconds);
  if (!was_given(question.command, "--size")) {
    if (!times.empty()) return times;
    return stop({ErrorCode::invalid_input, rows.file + " has no times of messages with data", ""});
  }
  const auto wanted = parse_size(question.flags.sizes.single);
  if (!wanted) return usage({wanted.error().code, "--size: " + wanted.error().message, wanted.error().help});
  const auto of_size = times.find(wanted->count);
  if (of_size != times.end()) return std::map{*of_size};
  return usage(
      {ErrorCode::invalid_input, fmt::format("--size: {} has nothing of {}", rows.file, question.flags.sizes.single),
       times.empty() ? "" : fmt::format("its sizes are from {} to {}", times.begin()->first, times.rbegin()->first)});
}

/// What the machine's profile simulates at each size.
OrStop<void> explain_table(const Console& console, const MeasuredQuestion& question, const Input& input,
                           const compare::Measurements& rows, MeasuredExplanation& explanation) {
  if (input.schedule) {
    return usage({ErrorCode::invalid_input, "a table of measured times is explained on a topology, under a profile",
                  "name the machine, or a timeline of the plan's run (run --trace)"});
  }
  const auto fits = sizes_by_collective(rows, input.topology);
  if (!fits) return tl::unexpected(fits.error());
  const auto chosen = question.flags.profile.resolve(question.flags.conditions, input.profile);
  if (!chosen) return usage(chosen.error());
  if (!*chosen) {
    return usage({ErrorCode::invalid_input, "a table of measured times is explained under a profile",
                  "such as --profile nccl-hopper; espalier explain --help names those there are"});
  }
  const auto times = times_by_size(question, rows);
  if (!times) return tl::unexpected(times.error());
  const std::string algorithm = question.flags.algorithms.empty() ? "nccl" : question.flags.algorithms;
  const auto algorithms = parse_algorithms(algorithm, true);
  if (!algorithms) return usage(algorithms.error());
  if (algorithms->size() > 1) {
    return usage({ErrorCode::invalid_input, "-a: one algorithm ran", "name that one, or nccl for what NCCL takes"});
  }
  const forecast::RunOptions how{.profile = *chosen};
  const auto candidates = plan_shown(
      console,
      {.machine = &input.topology, .collective = explanation.collective, .algorithms = *algorithms, .how = how});
  if (!candidates) return stop(candidates.error());
  forecast::CandidateRuns runs(input.topology, *candidates, how);
  explanation.profile = (*chosen)->shown;
  Progress progress(console, "simulating", times->size());
  for (const auto& [size, seconds] : *times) {
    progress.step(fmt::format("{} B", size));
    const auto run = runs.run(algorithm, predictable_size({size}, explanation.collective));
    if (!run) return stop(run.error());
    const auto detailed = forecast::run_in_detail(*run, input.topology, how);
    if (!detailed) return stop(detailed.error());
    sim::PathTimes path(run->setting->topology);
    for (const sim::PathPart& part : detailed->path_parts) path.add(part);
    explanation.calls.push_back(
        {{size}, seconds, run->by(), detailed->critical_path.size(), path.shares(), detailed->elapsed.seconds()});
  }
  return {};
}

OrStop<void> explain_timeline(const Input& input, const MeasuredFile& file, MeasuredExplanation& explanation) {
  const compare::Measurement& row = file.rows.rows.front();
  const Schedule* const schedule = input.schedule ? &*input.schedule : nullptr;
  auto path = find_measured_path(*file.timeline, explanation.file, input.topology, schedule);
  if (!path) return stop(path.error());
  explanation.calls.push_back({row.size, row.seconds, row.algorithm, path->steps, std::move(path->times), {}});
  return {};
}

OrStop<MeasuredExplanation> explain_file(const Console& console, const MeasuredQuestion& question, const Input& input) {
  const PredictionFlags& flags = question.flags;
  if (input.schedule) {
    if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  }
  const auto collective = input.schedule ? input.schedule->collective : flags.resolve_collective(input.topology);
  if (!collective) return usage(collective.error());
  auto files = load_measured(console, {question.file}, collective->kind);
  if (!files) return tl::unexpected(files.error());
  const MeasuredFile& file = files->front();
  if (const auto idle =
          find_idle_option(question.command, mode_of_file(file.timeline.has_value(), input.schedule.has_value())))
    return usage(*idle);
  MeasuredExplanation explanation;
  explanation.topology = &input.topology;
  explanation.collective = *collective;
  explanation.file = question.file;
  const auto bound = planners::compute_bound(input.topology, *collective);
  if (!bound) return stop(bound.error());
  explanation.bound = *bound;
  const auto explained = file.timeline ? explain_timeline(input, file, explanation)
                                       : explain_table(console, question, input, file.rows, explanation);
  if (!explained) return tl::unexpected(explained.error());
  std::vector<MeasuredTime> times;
  for (const MeasuredCall& call : explanation.calls) times.push_back({call.size, call.seconds});
  warn_of_too_fast(console, input.topology, explanation.collective, times);
  return explanation;
}

}  // namespace

ExitCode explain_measured(const Console& console, const MeasuredQuestion& question) {
  if (question.flags.input.argument.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "explain --measured needs a TOPOLOGY or PLAN",
                                 "such as espalier explain dgx-h100 all_reduce --measured all_reduce_perf.log"});
  }
  const auto input = load_input(console, question.flags.input, question.flags.plan_topology);
  if (!input) return refuse(console, input.error());
  const auto explanation = explain_file(console, question, *input);
  if (!explanation) {
    const Stop& why = explanation.error();
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  if (console.csv) {
    console.print_bytes(measured_table(*explanation).csv());
  } else {
    console.print(console.json ? json_text(measured_json(*explanation)) : measured_text(*explanation));
  }
  return ExitCode::ok;
}

}  // namespace espalier::cli
