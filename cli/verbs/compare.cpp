#include <fmt/format.h>

#include <cmath>
#include <set>
#include <sstream>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/predict_rows.h"
#include "cli/jobs/run_files.h"
#include "cli/measured/machine_verdict.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/picture_file.h"
#include "cli/reports/compare_output.h"
#include "cli/verbs/commands.h"
#include "compare/overlay_svg.h"
#include "schedule/json/schedule_json.h"

namespace espalier::cli {
namespace {

struct CompareFlags {
  std::string a;
  std::string b;
  std::string fail_above;
  std::string collective;
  std::string matrix;
  std::string algorithm;
  std::string plan;
  PictureFlags picture;
  std::optional<std::size_t> lanes;
  TopologyFlags machine;  ///< With a profile A is a machine.
  ProfileFlags profile;
  ConditionFlags conditions;  ///< Of which a profile takes --protocol.
};

ComparedFile describe(const std::string& file, const compare::RunFile& run) {
  if (const auto* timeline = std::get_if<Timeline>(&run)) return {file, timeline->title, timeline->origin};
  const compare::Measurements& measurements = std::get<compare::Measurements>(run);
  std::set<std::string> collectives;
  for (const compare::Measurement& row : measurements.rows) collectives.insert(row.collective);
  std::string what = fmt::format("{}, {}", fmt::join(collectives, ", "), counted(measurements.rows.size(), "row"));
  if (!measurements.topology.empty()) what += " on " + measurements.topology;
  return {file, what, measurements.origin};
}

/// The plan that both timelines ran, with what its transfers wait for.
struct PlanOfBoth {
  PlanFile file;
  Dependencies dependencies;
};

Result<std::optional<PlanOfBoth>> load_plan(const Console& console, const std::string& path) {
  if (path.empty()) return std::nullopt;
  const auto text = read_whole(console, path);
  if (!text) return tl::unexpected(text.error());
  auto plan = read_plan(*text, path);
  if (!plan) return tl::unexpected(plan.error());
  Dependencies dependencies(plan->schedule);
  return PlanOfBoth{std::move(*plan), std::move(dependencies)};
}

ExitCode verdict_of(const std::optional<Verdict>& verdict) {
  return verdict && !verdict->ok() ? ExitCode::check_failed : ExitCode::ok;
}

/// Why one timeline does not predict the other, as far as their titles say; empty: nothing is known against it.
std::string what_differs(const Timeline& a, const Timeline& b) {
  const auto of_a = compare::measurements_of(a, "A"), of_b = compare::measurements_of(b, "B");
  if (!of_a || !of_b) return {};
  const compare::Measurement &one = of_a->rows.front(), &other = of_b->rows.front();
  if (one.collective != other.collective) return fmt::format("A is of {}, B of {}", one.collective, other.collective);
  if (one.size == other.size) return {};
  return fmt::format("A is of {}, B of {}", format_size(one.size), format_size(other.size));
}

ExitCode compare_two_timelines(const Console& console, const CompareFlags& flags, CompareHeader header, Timeline a,
                               Timeline b, const std::optional<double>& limit) {
  const auto plan = load_plan(console, flags.plan);
  if (!plan) return console.refuse(plan.error());
  const compare::KnownSchedule known =
      *plan ? compare::KnownSchedule{&(*plan)->file.schedule, &(*plan)->dependencies} : compare::KnownSchedule{};
  if (flags.picture.are_given()) {
    std::ostringstream svg;
    const auto drawn = compare::write_overlay_svg(svg, a, b, {header.a.file, header.b.file, flags.lanes.value_or(48)});
    if (!drawn) return console.refuse(drawn.error());
    if (const auto written = flags.picture.write(console, svg.str()); !written) return console.refuse(written.error());
  }
  if (const std::string why = what_differs(a, b); !why.empty()) {
    console.warn(why + ": neither predicts the other");
  }
  const compare::TimelineComparison comparison = compare::compare_timelines(std::move(a), std::move(b), known);
  if (comparison.total.a.count <= 0 || comparison.total.b.count <= 0) {
    const std::string& empty = comparison.total.a.count <= 0 ? header.a.file : header.b.file;
    return console.refuse({ErrorCode::invalid_input, empty + ": nothing in this timeline takes time",
                           "write timelines with --trace of simulate and run"});
  }
  header.first_line = first_line_of(comparison);
  header.first_json = {{"text", header.first_line}};
  if (limit) header.verdict = Verdict{*limit, std::abs(comparison.total.error()), "error of total"};
  if (flags.picture.take_output()) return verdict_of(header.verdict);
  if (console.csv) {
    console.print_bytes(links_table(comparison, comparison.links.size()).csv());
    return verdict_of(header.verdict);
  }
  console.print(console.json ? json_text(timelines_json(header, comparison)) : timelines_text(header, comparison));
  return verdict_of(header.verdict);
}

ExitCode compare_two_tables(const Console& console, CompareHeader header, const compare::Measurements& a,
                            const compare::Measurements& b, const std::string& algorithm,
                            const std::optional<double>& limit, const MeasuredMachine* machine = nullptr) {
  const auto comparison = compare::compare_results(a, b, algorithm);
  if (!comparison) return console.refuse(comparison.error());
  if (const auto times = compare::predicted_times(*comparison); !times.empty()) {
    if (machine != nullptr) {
      const MachineVerdict verdict = find_verdict(console, *machine, times);
      header.first_line = machine->argument + ": " + verdict_sentence(verdict);
      header.first_json = verdict_json(verdict);
    } else {
      const compare::Judgement judgement = compare::judge(times);
      header.first_line = "B: " + judgement_sentence(judgement);
      header.first_json = judgement_json(judgement);
    }
  }
  if (limit) header.verdict = Verdict{*limit, comparison->errors.median, "median error"};
  if (console.csv) {
    console.print_bytes(results_table(*comparison).csv());
  } else {
    console.print(console.json ? json_text(results_json(header, *comparison)) : results_text(header, *comparison));
  }
  return verdict_of(header.verdict);
}

Result<compare::Measurements> as_table(const compare::RunFile& run, const std::string& file) {
  if (const auto* timeline = std::get_if<Timeline>(&run)) return compare::measurements_of(*timeline, file);
  return std::get<compare::Measurements>(run);
}

/// Whether A is a machine rather than a run: a shipped one, or YAML.
bool is_machine(const std::string& name) {
  return is_shipped_machine(name) || name.ends_with(".yaml") || name.ends_with(".yml");
}

/// A machine under a profile against what was measured there.
ExitCode compare_with_machine(const Console& console, const CompareFlags& flags, const std::optional<double>& limit) {
  if (flags.picture.are_given() || !flags.plan.empty()) {
    return console.refuse_usage(
        {ErrorCode::invalid_input, "--svg, --png and --plan are of two timelines", "leave them out"});
  }
  TopologyFlags of_machine = flags.machine;
  of_machine.argument = flags.a;
  const auto machine = load_machine(console, of_machine);
  if (!machine) return refuse(console, machine.error());
  const Topology* const topology = &machine->topology;
  const auto chosen = flags.profile.resolve(flags.conditions, machine->profile);
  if (!chosen) return console.refuse_usage(chosen.error());
  if (!*chosen) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 flags.profile.name.empty()
                                     ? flags.a + " names no profile, under which it would be compared"
                                     : "a machine is compared under a profile, and ideal is none",
                                 flags.profile.name.empty() ? "name one, such as --profile nccl-hopper"
                                                            : "compare the --json of simulate with the measurement"});
  }
  auto runs = load_runs(console, {flags.b}, flags.collective, flags.matrix);
  if (!runs)
    return runs.error().is_usage ? console.refuse_usage(runs.error().error) : console.refuse(runs.error().error);
  auto measured = as_table(runs->front().second, flags.b);
  if (!measured) return console.refuse(measured.error());
  keep_whole(*measured);
  keep_ranks(*measured, topology->rank_count());
  const std::string algorithm = flags.algorithm.empty() ? "nccl" : flags.algorithm;
  const auto predicted = predict_rows(console, *topology, *measured, **chosen, algorithm);
  if (!predicted) {
    const Stop& why = predicted.error();
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  const MeasuredMachine given{*topology, flags.a,   flags.profile.name.empty() ? "" : "--profile " + flags.profile.name,
                              *chosen,   algorithm, *measured};
  CompareHeader header{describe(flags.a, *predicted), describe(flags.b, *measured), std::nullopt};
  header.a.what += ", profile " + (*chosen)->shown;
  header.shows_bands = true;
  return compare_two_tables(console, std::move(header), *predicted, *measured, {}, limit, &given);
}

ExitCode run(const Console& console, const CompareFlags& flags) {
  if (flags.picture.take_output() && (console.json || console.csv)) {
    return console.refuse_usage(
        {ErrorCode::invalid_input,
         fmt::format("--{} and a picture to - would both write to standard output", console.json ? "json" : "csv"),
         "write the drawing to a file"});
  }
  if (flags.picture.take_output() && !flags.plan.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "--plan is for the paths in the text, which a picture to - leaves out",
                                 "write the drawing to a file"});
  }
  if (flags.lanes && !flags.picture.are_given()) {
    return console.refuse_usage(
        {ErrorCode::invalid_input, "--lanes is of a drawing", "add --svg FILE or --png FILE, or leave it out"});
  }
  std::optional<double> limit;
  if (!flags.fail_above.empty()) {
    const auto parsed = parse_part("--fail-above", flags.fail_above);
    if (!parsed) return console.refuse_usage(parsed.error());
    limit = to_double(*parsed);
  }
  if (!flags.profile.name.empty() || is_machine(flags.a)) return compare_with_machine(console, flags, limit);
  if (const auto given = flags.machine.first_given()) {
    return console.refuse_usage({ErrorCode::invalid_input, *given + " is of a machine, and A is none",
                                 "name a machine as A, such as dgx-h100"});
  }
  if (!flags.conditions.protocol.empty() || !flags.profile.version.empty() || !flags.profile.paths.empty()) {
    const std::string option = !flags.profile.version.empty() ? "--nccl-version"
                               : !flags.profile.paths.empty() ? "--paths"
                                                              : "--protocol";
    return console.refuse_usage(
        {ErrorCode::invalid_input, option + " is of a profile", "such as --profile nccl-hopper, with a machine as A"});
  }
  auto runs = load_runs(console, {flags.a, flags.b}, flags.collective, flags.matrix);
  if (!runs)
    return runs.error().is_usage ? console.refuse_usage(runs.error().error) : console.refuse(runs.error().error);
  compare::RunFile* const a = &runs->front().second;
  compare::RunFile* const b = &runs->back().second;
  const CompareHeader header{describe(flags.a, *a), describe(flags.b, *b), std::nullopt, false};
  auto* timeline_a = std::get_if<Timeline>(&*a);
  auto* timeline_b = std::get_if<Timeline>(&*b);
  if (timeline_a != nullptr && timeline_b != nullptr) {
    if (!flags.algorithm.empty() || !flags.collective.empty()) {
      return console.refuse_usage({ErrorCode::invalid_input,
                                   "-a and --collective are of tables, and these are two timelines", "leave them out"});
    }
    return compare_two_timelines(console, flags, header, std::move(*timeline_a), std::move(*timeline_b), limit);
  }
  if (flags.picture.are_given() || !flags.plan.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input, "--svg, --png and --plan are of two timelines",
                                 "write them with --trace of simulate and run"});
  }
  const auto table_a = as_table(*a, flags.a);
  if (!table_a) return console.refuse(table_a.error());
  const auto table_b = as_table(*b, flags.b);
  if (!table_b) return console.refuse(table_b.error());
  return compare_two_tables(console, header, *table_a, *table_b, flags.algorithm, limit);
}

}  // namespace

void add_compare_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Hold two runs against each other: a prediction A and what was measured, B");
  command
      ->add_option("A", flags->a,
                   "Timeline or results: of simulate or run (--trace, --json), or of nccl-tests; or a machine, under "
                   "its profile")
      ->required();
  command->add_option("B", flags->b, "The same; errors are parts of B's times")->required();
  command
      ->add_option("--fail-above", flags->fail_above,
                   "Exit with 1 when the error (of timelines: of the total; of results: the median) is larger")
      ->option_text("PERCENT");
  flags->picture.add_to(*command, "the two timelines over each other");
  command->add_option("--lanes", flags->lanes, "Draw at most so many lanes")
      ->check(CLI::Range(1, 4096))
      ->option_text("N (48)");
  command->add_option("--plan", flags->plan, "The plan that both timelines ran, for exact critical paths")
      ->option_text("FILE");
  command
      ->add_option("-a,--algorithm", flags->algorithm,
                   "Of files with several: only its rows; best: the fastest of each file at each size")
      ->option_text("NAME");
  command
      ->add_option("--collective", flags->collective,
                   "What nccl-tests measured, where neither its output nor the file's name says so")
      ->option_text("NAME");
  command
      ->add_option("--matrix", flags->matrix,
                   "What alltoallv_perf of nccl-tests sent: a matrix's file, or spread:1, its own pattern")
      ->option_text("MATRIX");
  flags->profile.add_to(*command);
  command->add_option("--protocol", flags->conditions.protocol, "With a profile: simple, ll or ll128 alone")
      ->option_text("NAME");
  command
      ->add_option("-p,--parameter", flags->machine.parameters,
                   "With a profile: set a parameter of A's compact file; may be repeated")
      ->option_text("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--ranks", flags->machine.ranks, "With a profile: nodes and ranges that are the only ranks of A")
      ->option_text("NAMES");
  flags->machine.add_damage_to(*command);
  add_csv_to(*command, session.console);
  command->footer(examples({"espalier --json simulate one-host all_reduce -a ring -s 1M > simulated.json",
                            "espalier --json run one-host all_reduce -a ring -s 1M > measured.json",
                            "espalier compare simulated.json measured.json",
                            "espalier compare predicted.json measured.json --fail-above 10%",
                            "espalier compare sim-trace.json run-trace.json --svg overlay.svg",
                            "espalier compare predicted.json all_reduce_perf.log",
                            "espalier compare dgx-h100 all_reduce_perf.log --profile nccl-hopper",
                            "espalier compare dgx-h100-x4 all_reduce_perf.log --slow box0.nic0=0.5"}) +
                  "\nThe files' kinds are seen from their content. The definitions are in docs/compare.md.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
