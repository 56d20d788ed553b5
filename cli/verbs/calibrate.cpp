#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/parse_units.h"
#include "cli/calibration/profile_calibration.h"
#include "cli/calibration/profile_calibration_output.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/calibration_runs.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/run_files.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/reports/calibrate_output.h"
#include "cli/verbs/commands.h"
#include "compare/compare_results.h"
#include "espalier/software.h"
#include "profile/profile_values.h"
#include "schedule/json/schedule_json.h"
#include "schedule/verify/verify.h"

namespace espalier::cli {
namespace {

struct CalibrateFlags {
  TopologyFlags topology;
  std::vector<std::string> from;
  std::string output;
  std::string algorithm;
  std::string collective;
  std::string plan;
  std::string chunk;
  std::string smallest;
  std::string largest;
  std::string hold_out = "5";
  std::string profile;
};

/// The size that a flag names, or nothing when it is absent.
Result<std::optional<Bytes>> parse_optional_size(const char* flag, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto size = parse_size(text);
  if (!size) return fail(size.error().code, std::string(flag) + ": " + size.error().message, size.error().help);
  if (size->count < 1) return fail(ErrorCode::invalid_input, std::string(flag) + ": at least one byte");
  return *size;
}

/// The number of parts that --hold-out names: 0, 2 or more, or as many as there are runs.
Result<std::size_t> parse_hold_out(const std::string& text) {
  if (text == "all") return std::numeric_limits<std::size_t>::max();
  std::size_t parts = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), parts);
  if (status == std::errc() && end == text.data() + text.size() && parts != 1) return parts;
  return fail(ErrorCode::invalid_input,
              fmt::format("--hold-out: {}", text == "1" ? "one part would leave all runs out"
                                                        : "'" + text + "' is not a number of parts"),
              "write 0 for none, a number from 2 on, or all for a part for each run");
}

Result<CalibrationHints> parse_hints(const CalibrateFlags& flags) {
  CalibrationHints hints;
  hints.algorithm = flags.algorithm;
  const auto chunk = parse_optional_size("--chunk", flags.chunk);
  if (!chunk) return tl::unexpected(chunk.error());
  hints.chunk = *chunk;
  const auto smallest = parse_optional_size("-b", flags.smallest);
  if (!smallest) return tl::unexpected(smallest.error());
  hints.smallest = smallest->value_or(hints.smallest);
  const auto largest = parse_optional_size("-e", flags.largest);
  if (!largest) return tl::unexpected(largest.error());
  hints.largest = largest->value_or(hints.largest);
  return hints;
}

Result<void> load_plan(const Console& console, const std::string& path, const Topology& topology,
                       CalibrationHints& hints) {
  if (path.empty()) return {};
  const auto text = read_whole(console, path);
  if (!text) return tl::unexpected(text.error());
  auto plan = read_plan(*text, path, &topology);
  if (!plan) return tl::unexpected(plan.error());
  if (auto verified = require_verified(plan->schedule, topology, path); !verified) return verified;
  hints.plan = std::move(plan->schedule);
  return {};
}

/// A flag for what every file says itself, or nothing.
std::optional<Error> find_idle_hint(const CalibrateFlags& flags, const NamedRuns& files) {
  bool lacks_algorithm = false, lacks_chunk = false;
  for (const auto& [path, file] : files) {
    const auto* const measured = std::get_if<compare::Measurements>(&file);
    const auto rows = measured != nullptr ? Result<compare::Measurements>(*measured)
                                          : compare::measurements_of(std::get<Timeline>(file), path);
    if (!rows) continue;  // Told when they are planned.
    for (const compare::Measurement& row : rows->rows) {
      lacks_algorithm = lacks_algorithm || row.algorithm.empty();
      lacks_chunk = lacks_chunk || (measured != nullptr && row.chunk.count == 0);
    }
  }
  const auto idle = [](const std::string& flag, const char* what) {
    return Error{ErrorCode::invalid_input, flag + " does not apply: every file says itself " + what,
                 "leave " + flag + " out"};
  };
  if (!flags.algorithm.empty() && !lacks_algorithm) return idle("--algorithm", "which algorithm ran");
  if (!flags.chunk.empty() && !lacks_chunk) return idle("--chunk", "what its chunk was");
  return std::nullopt;
}

Result<compare::Calibration> fit(const Console& console, const Topology& topology, const CalibrationRuns& runs,
                                 std::size_t hold_out) {
  Progress progress(console, "calibrating", 0);  // How many simulations it takes is seen at the end.
  compare::CalibrateOptions options;
  options.hold_out_parts = hold_out;
  std::size_t done = 0;
  options.on_prediction = [&] { progress.step("simulation " + std::to_string(++done)); };
  return compare::calibrate(topology, runs.seconds(), runs.reduces(), simulated_times(runs), options);
}

/// What a run of the verb writes: a table or document on standard output, and a file.
ExitCode write_outcome(const Console& console, const std::string& output, const std::string& shown,
                       const std::string& file_text) {
  if (output != "-") console.print_bytes(shown);
  if (output.empty()) return ExitCode::ok;
  const auto written = write_file(output, [&](std::ostream& out) -> Result<void> {
    out << file_text;
    return {};
  });
  if (!written) return console.refuse(written.error());
  if (output != "-") console.note("wrote " + output);
  return ExitCode::ok;
}

/// --profile: the values of a profile instead of those of the topology.
ExitCode calibrate_profile(const Console& console, const CalibrateFlags& flags, bool leave_out) {
  const auto chosen = read_software(flags.profile, "--profile");
  if (!chosen) return console.refuse_usage(chosen.error());
  const profile::Profile& given = chosen->profile;
  ProfileCalibration tables;
  for (const std::string& text : flags.from) {
    const auto source = parse_table_source(text);
    if (!source) return console.refuse_usage(source.error());
    const auto added = tables.add(console, *source, flags.topology, flags.collective, given);
    if (added) continue;
    const Stop& why = added.error();
    if (why.is_shown) return why.is_usage ? ExitCode::wrong_usage : ExitCode::check_failed;
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  if (tables.rows().empty()) {
    return console.refuse({ErrorCode::invalid_input, "there is no run to calibrate from", "give tables with rows"});
  }
  std::vector<double> start;
  compare::FitValuesOptions options;
  for (const profile::ProfileValue& value : profile::values_of(given)) {
    if (value.kind != profile::ValueKind::time) options.rates.push_back(start.size());
    start.push_back(value.value);
  }
  ProfileCalibrationReport report{&given, nullptr, &tables, nullptr, {}, {}};
  if (leave_out) {
    report.by_table = tables.parts_by_table();
    report.by_machine = tables.parts_by_machine();
    if (report.by_table.size() < 2) report.by_table.clear();
    if (report.by_machine.size() < 2) report.by_machine.clear();
  }
  std::vector<compare::HoldOutPart> parts = report.by_table;
  parts.insert(parts.end(), report.by_machine.begin(), report.by_machine.end());
  Progress progress(console, "calibrating", 0);
  std::size_t done = 0;
  const compare::PredictFrom predict = [&](std::span<const double> values, std::span<const std::size_t> which) {
    progress.step("prediction " + std::to_string(++done));
    return tables.predict(profile::with_values(given, values), which);
  };
  const auto fit = compare::fit_values(start, tables.measured(), tables.importance(), predict, parts, options);
  if (!fit) return console.refuse(fit.error());
  std::vector<double> fitted;
  for (const compare::FittedValue& value : fit->values) fitted.push_back(value.value);
  const profile::Profile calibrated = profile::with_values(given, fitted);
  report.fitted = &calibrated;
  report.fit = &*fit;
  const std::string shown = console.csv    ? profile_values_table(report).csv()
                            : console.json ? json_text(profile_calibration_json(report))
                                           : profile_calibration_text(report);
  return write_outcome(console, flags.output, shown, calibrated_profile_yaml(report));
}

/// What is of a topology's calibration alone.
std::optional<Error> find_idle_with_profile(const CalibrateFlags& flags) {
  for (const auto& [flag, value] : {std::pair{"-a", &flags.algorithm},
                                    {"--plan", &flags.plan},
                                    {"--chunk", &flags.chunk},
                                    {"-b", &flags.smallest},
                                    {"-e", &flags.largest}}) {
    if (!value->empty()) {
      return Error{ErrorCode::invalid_input, fmt::format("{} does not apply with --profile", flag),
                   "name an algorithm with its table: table.txt@MACHINE,algorithm=nccl/ring"};
    }
  }
  if (flags.hold_out == "5" || flags.hold_out == "0") return std::nullopt;
  return Error{ErrorCode::invalid_input,
               "--hold-out with --profile leaves each table and machine out, or nothing with 0",
               "leave it out, or write 0"};
}

ExitCode run(const Console& console, const CalibrateFlags& flags) {
  if (flags.output == "-" && (console.json || console.csv)) {
    return console.refuse_usage(
        {ErrorCode::invalid_input,
         fmt::format("--{} and -o - would both write to standard output", console.json ? "json" : "csv"),
         "write the topology to a file"});
  }
  if (!flags.profile.empty()) {
    if (const auto idle = find_idle_with_profile(flags)) return console.refuse_usage(*idle);
    return calibrate_profile(console, flags, flags.hold_out != "0");
  }
  auto hints = parse_hints(flags);
  if (!hints) return console.refuse_usage(hints.error());
  const auto hold_out = parse_hold_out(flags.hold_out);
  if (!hold_out) return console.refuse_usage(hold_out.error());
  const auto topology = load_topology(console, flags.topology);
  if (!topology) return refuse(console, topology.error());
  if (auto loaded = load_plan(console, flags.plan, *topology, *hints); !loaded) return console.refuse(loaded.error());
  const auto files = load_runs(console, flags.from, flags.collective);
  if (!files) {
    const Stop& why = files.error();
    return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
  }
  if (const auto idle = find_idle_hint(flags, *files)) return console.refuse_usage(*idle);
  const auto runs = plan_runs(console, *topology, *files, *hints);
  if (!runs) return console.refuse(runs.error());
  const auto calibration = fit(console, *topology, *runs, *hold_out);
  if (!calibration) return console.refuse(calibration.error());
  const CalibrationReport report{&*topology, flags.from, &*runs, &*calibration};
  const std::string shown = console.csv    ? parameters_table(*calibration).csv()
                            : console.json ? json_text(calibration_json(report))
                                           : calibration_text(report);
  return write_outcome(console, flags.output, shown, calibrated_yaml(report));
}

}  // namespace

void add_calibrate_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Fit latency, bandwidth, overhead and reduction rates of a topology to measured runs");
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  command
      ->add_option("--profile", flags->profile,
                   "Fit the values of this profile instead, to tables of nccl-tests or results of run --json: TABLE or "
                   "TABLE@MACHINE,launch=NAME,algorithm=nccl/ring,protocol=ll,ranks=NAMES")
      ->option_text("NAME|FILE");
  command->add_option("--from", flags->from, "Measured runs: results (run --json), nccl-tests output, timelines")
      ->required()
      ->option_text("RUN...");
  command->add_option("-o,--output", flags->output, "Write the calibrated topology; - for standard output, alone")
      ->option_text("FILE");
  CLI::Option* const algorithm = command
                                     ->add_option("-a,--algorithm", flags->algorithm,
                                                  "What ran, where a file does not say (nccl-tests): ring, tree, ...")
                                     ->option_text("NAME");
  command
      ->add_option("--collective", flags->collective,
                   "What nccl-tests measured, where neither its output nor the file's name says so")
      ->option_text("NAME");
  command->add_option("--plan", flags->plan, "The plan that ran, instead of planning anew")
      ->option_text("FILE")
      ->excludes(algorithm);
  command->add_option("--chunk", flags->chunk, "Largest chunk of runs whose file does not say")->option_text("SIZE");
  command->add_option("-b,--minbytes", flags->smallest, "Only runs from this size on")->option_text("SIZE");
  command->add_option("-e,--maxbytes", flags->largest, "Only runs up to this size")->option_text("SIZE");
  command
      ->add_option("--hold-out", flags->hold_out,
                   "Deal runs into N parts and predict each by a fit without it; all: a part for each run; 0: do not")
      ->option_text("N (5)");
  add_csv_to(*command, session.console);
  command->footer(
      examples(
          {"espalier --json run one-host all_reduce -a ring -b 64K -e 16M -f 4 > run.json",
           "espalier calibrate one-host --from run.json -o calibrated.yaml",
           "espalier calibrate cluster.yaml --from ring.json tree.json -b 1M",
           "espalier calibrate dgx-a100 --from all_reduce_perf.log -a ring -o calibrated.yaml",
           "espalier calibrate dgx-a100 --profile nccl-ampere --from all_reduce.txt x2.txt@dgx-a100-x2 -o own.yaml"}) +
      "\nEvery run is simulated again with the schedule that ran. What the runs cannot tell apart is held or\n"
      "fitted jointly, and said so. The method is in docs/compare.md.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
