#include "cli/measured/explain_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "base/parse_units.h"
#include "cli/flags/algorithm_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/measured_beside.h"
#include "cli/jobs/plan_shown.h"
#include "cli/jobs/predict_rows.h"
#include "cli/jobs/run_files.h"
#include "cli/jobs/simulate_sizes.h"
#include "cli/measured/machine_verdict.h"
#include "cli/measured/measured_explanation.h"
#include "cli/measured/measured_path.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "compare/compare_results.h"
#include "compare/path_by_rank.h"
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

double bound_seconds_of(const MeasuredExplanation& explanation, Bytes size) {
  return to_double(explanation.bound.time_per_byte) * static_cast<double>(size.count);
}

/// What the links of a run's setting carry of a call, by the setting.
class CarriedByLinks {
 public:
  explicit CarriedByLinks(const Collective& collective) : collective_(collective) {}

  std::optional<CarriedBytes> of(const forecast::CandidateRun& run, Bytes size) {
    if (run.setting == nullptr) return std::nullopt;
    const auto [known, is_new] = per_byte_.emplace(run.setting, 0);
    if (is_new) {
      const auto bound = planners::compute_bound(run.setting->topology, collective_);
      if (bound) known->second = to_double(bound->time_per_byte);
    }
    if (!(known->second > 0)) return std::nullopt;
    return CarriedBytes{known->second * static_cast<double>(size.count),
                        static_cast<double>(run.setting->endpoints.payload_ppm) / profile::whole_ppm};
  }

 private:
  const Collective& collective_;
  std::map<const profile::CostedNetwork*, double> per_byte_;
};

/// Whether what was measured at the sizes that are explained is as it should be.
void judge_table(const Console& console, const MeasuredMachine& given, MeasuredExplanation& explanation) {
  std::vector<compare::PredictedTime> times;
  compare::Measurements shown = given.measured;
  std::erase_if(shown.rows, [&](const compare::Measurement& row) {
    return std::ranges::find(explanation.calls, row.size, &MeasuredCall::size) == explanation.calls.end();
  });
  for (const MeasuredCall& call : explanation.calls) times.push_back({call.size, *call.predicted, call.seconds});
  const MachineVerdict verdict = find_verdict(
      console, {given.topology, given.argument, given.options, given.software, given.algorithm, shown}, times);
  explanation.first_line = given.argument + ": " + verdict_sentence(verdict);
  explanation.verdict = verdict_json(verdict);
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
  CarriedByLinks carried(explanation.collective);
  Progress progress(console, "simulating", times->size());
  for (const auto& [size, seconds] : *times) {
    progress.step(fmt::format("{} B", size));
    const auto run = runs.run(algorithm, predictable_size({size}, explanation.collective));
    if (!run) return stop(run.error());
    const auto detailed = forecast::run_in_detail(*run, input.topology, how);
    if (!detailed) return stop(detailed.error());
    sim::PathTimes path(run->setting->topology);
    for (const sim::PathPart& part : detailed->path_parts) path.add(part);
    MeasuredCall& call = explanation.calls.emplace_back();
    call = {{size}, seconds, run->by(), detailed->critical_path.size(), path.shares(), detailed->elapsed.seconds(), {}};
    call.factors = factors_of(call, bound_seconds_of(explanation, {size}), carried.of(*run, {size}));
  }
  const std::string& named = question.flags.profile.name;
  judge_table(console,
              {input.topology, question.flags.input.argument, named.empty() ? "" : "--profile " + named, *chosen,
               algorithm, rows},
              explanation);
  return {};
}

/// Of a timeline alone nothing is predicted: which part of the limit it reached, and the rank that it waited for where
/// one stands out.
std::string first_line_of(const MeasuredExplanation& explanation, const std::string& machine, const Timeline& timeline,
                          const compare::KnownSchedule& known) {
  const MeasuredCall& call = explanation.calls.back();
  std::string text =
      fmt::format("{}: {:.1f} % of the limit", machine, 100 * bound_seconds_of(explanation, call.size) / call.seconds);
  const std::vector<Picoseconds> waited = compare::path_by_rank(timeline, known);
  const auto most = std::ranges::max_element(waited);
  if (waited.size() < 2 || !(call.seconds > 0)) return text;
  const double part = most->seconds() / call.seconds, fair = 1 / static_cast<double>(waited.size());
  constexpr double clearly = 1.5;
  if (part < std::min(clearly * fair, (1 + fair) / 2)) return text;
  return text + fmt::format("; points at {}, which was waited for {:.0f} % of the time (one of {} would be {:.0f} %)",
                            timeline.rank_names[static_cast<std::size_t>(most - waited.begin())], 100 * part,
                            waited.size(), 100 * fair);
}

OrStop<void> explain_timeline(const Input& input, const MeasuredFile& file, MeasuredExplanation& explanation) {
  const compare::Measurement& row = file.rows.rows.front();
  const Schedule* const schedule = input.schedule ? &*input.schedule : nullptr;
  auto path = find_measured_path(*file.timeline, explanation.file, input.topology, schedule);
  if (!path) return stop(path.error());
  MeasuredCall& call = explanation.calls.emplace_back();
  call = {row.size, row.seconds, row.algorithm, path->steps, std::move(path->times), {}, {}};
  call.factors = factors_of(call, bound_seconds_of(explanation, row.size), {});
  std::optional<Dependencies> dependencies;
  if (schedule != nullptr) dependencies.emplace(*schedule);
  const compare::KnownSchedule known{schedule, dependencies ? &*dependencies : nullptr};
  explanation.first_line = first_line_of(explanation, input.topology.name(), *file.timeline, known);
  explanation.verdict = {{"text", explanation.first_line}};
  return {};
}

/// The collective that the rows of a file are of, where they are of one; else an empty name.
std::string collective_in(const Console& console, const std::string& file) {
  if (file == "-") return {};  // What is read once is gone.
  const auto runs = load_runs(console, {file}, {});
  if (!runs) return {};
  const compare::RunFile& run = runs->front().second;
  const auto* timeline = std::get_if<Timeline>(&run);
  const auto table = timeline != nullptr ? compare::measurements_of(*timeline, file)
                                         : Result<compare::Measurements>(std::get<compare::Measurements>(run));
  std::set<std::string> named;
  if (table) {
    for (const compare::Measurement& row : table->rows) named.insert(row.collective);
  }
  return named.size() == 1 ? *named.begin() : std::string();
}

/// What is named, or what the file was measured of. Errors: usage.
OrStop<Collective> collective_of(const Console& console, const MeasuredQuestion& question, const Input& input) {
  if (input.schedule) return input.schedule->collective;
  PredictionFlags flags = question.flags;
  if (flags.collective.name.empty()) flags.collective.name = collective_in(console, question.file);
  auto collective = flags.resolve_collective(input.topology);
  if (!collective) return usage(collective.error());
  return *std::move(collective);
}

OrStop<MeasuredExplanation> explain_file(const Console& console, const MeasuredQuestion& question, const Input& input) {
  const PredictionFlags& flags = question.flags;
  if (input.schedule) {
    if (const auto checked = flags.check_plan(input); !checked) return tl::unexpected(checked.error());
  }
  OrStop<Collective> collective = collective_of(console, question, input);
  if (!collective) return tl::unexpected(collective.error());
  auto files = load_measured(console, {question.file}, collective->kind);
  if (!files) return tl::unexpected(files.error());
  const MeasuredFile& file = files->front();
  if (const auto idle =
          find_idle_option(question.command, mode_of_file(file.timeline.has_value(), input.schedule.has_value())))
    return usage(*idle);
  if (!file.timeline && !input.schedule) {
    auto with_shares = with_shares_of(file.rows, *std::move(collective));
    if (!with_shares) return stop(with_shares.error());
    collective = *std::move(with_shares);
  }
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
