#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include "base/parallel.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/run_files.h"
#include "cli/measured/diagnosis_output.h"
#include "cli/measured/diagnosis_runs.h"
#include "cli/output/json_text.h"
#include "cli/output/progress.h"
#include "cli/verbs/commands.h"
#include "compare/compare_results.h"
#include "topology/names/group.h"

namespace espalier::cli {
namespace {

struct DiagnoseFlags {
  TopologyFlags machine;
  std::vector<std::string> files;
  std::string algorithm;
  std::string collective;
  ProfileFlags profile;
  std::string protocol;
};

/// A FILE argument: "next.txt@box0.gpu[0-3]" is next.txt, measured on these ranks alone.
struct FileArgument {
  std::string path;
  std::string ranks;
};

FileArgument parse_file(const std::string& argument) {
  const std::size_t at = argument.rfind('@');
  std::error_code ignored;
  if (at == std::string::npos || std::filesystem::exists(argument, ignored)) return {argument, {}};
  return {argument.substr(0, at), argument.substr(at + 1)};
}

OrStop<Topology> machine_of(const Topology& machine, const FileArgument& file) {
  if (file.ranks.empty()) return machine;
  const auto nodes = find_rank_nodes(machine, file.ranks);
  if (!nodes) return usage({nodes.error().code, file.path + "@: " + nodes.error().message, nodes.error().help});
  auto tested = with_ranks(machine, *nodes);
  if (!tested) return usage(tested.error());
  return *std::move(tested);
}

/// What was measured, and the machine with the ranks of each series.
struct Tables {
  std::vector<diagnose::Evidence> evidence;
  std::vector<Topology> tested;

  [[nodiscard]] std::size_t rows() const {
    std::size_t count = 0;
    for (const diagnose::Evidence& each : evidence) count += each.points.size();
    return count;
  }
};

/// A table by the ranks that each row is of.
std::map<std::vector<std::uint32_t>, compare::Measurements> by_members(const compare::Measurements& table) {
  std::map<std::vector<std::uint32_t>, compare::Measurements> parts;
  for (const compare::Measurement& row : table.rows) {
    compare::Measurements& part = parts[row.members];
    part.file = table.file;
    part.origin = table.origin;
    part.rows.push_back(row);
  }
  return parts;
}

/// The names of these ranks, as --ranks takes them. Errors: usage where the machine has fewer.
OrStop<std::string> names_of(const Topology& machine, const std::vector<std::uint32_t>& members,
                             const std::string& file) {
  std::string names;
  for (const std::uint32_t member : members) {
    if (member >= machine.rank_count()) {
      return stop(
          {ErrorCode::invalid_input,
           fmt::format("{} has GPU {}, and {} has {} ranks", file, member, machine.name(), machine.rank_count()),
           "name the machine that was measured"});
    }
    names += (names.empty() ? "" : ",") + machine.rank_name(Rank(member));
  }
  return names;
}

/// Adds the series of rows that are all of the same ranks.
OrStop<void> add_series(Tables& tables, const compare::Measurements& table, const Topology& tested,
                        const std::string& ranks, const std::string& usual_algorithm) {
  auto evidence = evidence_of(table, tested, ranks, usual_algorithm);
  if (!evidence) return tl::unexpected(evidence.error());
  for (diagnose::Evidence& each : *evidence) {
    tables.evidence.push_back(std::move(each));
    tables.tested.push_back(tested);
  }
  return {};
}

OrStop<Tables> load_tables(const Console& console, const DiagnoseFlags& flags, const Topology& machine,
                           const std::string& usual_algorithm) {
  Tables tables;
  for (const std::string& argument : flags.files) {
    const FileArgument file = parse_file(argument);
    const auto tested = machine_of(machine, file);
    if (!tested) return tl::unexpected(tested.error());
    const auto runs = load_runs(console, {file.path}, flags.collective);
    if (!runs) return tl::unexpected(runs.error());
    const compare::RunFile& run = runs->front().second;
    const auto* timeline = std::get_if<Timeline>(&run);
    const auto table = timeline != nullptr ? compare::measurements_of(*timeline, file.path)
                                           : Result<compare::Measurements>(std::get<compare::Measurements>(run));
    if (!table) return stop(table.error());
    for (const auto& [members, part] : by_members(*table)) {
      FileArgument of_part = file;
      if (!members.empty()) {
        const auto names = names_of(*tested, members, file.path);
        if (!names) return tl::unexpected(names.error());
        of_part.ranks = *names;
      }
      const auto of_members = machine_of(machine, of_part);
      if (!of_members) return tl::unexpected(of_members.error());
      if (auto added = add_series(tables, part, *of_members, of_part.ranks, usual_algorithm); !added) {
        return tl::unexpected(added.error());
      }
    }
  }
  return tables;
}

/// The row that is furthest below what any schedule takes.
std::optional<TooFast> find_too_fast(const Tables& tables, DiagnosisRuns& runs) {
  std::optional<TooFast> worst;
  constexpr double rounding = 0.995;  // nccl-tests prints four digits, and sizes are whole elements.
  for (const diagnose::Evidence& each : tables.evidence) {
    const auto bound = runs.bound_per_byte(each.question);
    for (const diagnose::Point& point : each.points) {
      const double least = bound * static_cast<double>(point.size.count);
      if (point.seconds >= rounding * least) continue;
      if (worst && worst->point.seconds / worst->bound_seconds <= point.seconds / least) continue;
      worst = TooFast{&each, point, least};
    }
  }
  return worst;
}

/// The software and its other ways to start a call, the given one first.
std::vector<std::shared_ptr<const forecast::Software>> launches_of(
    const std::shared_ptr<const forecast::Software>& given) {
  std::vector<std::shared_ptr<const forecast::Software>> all = {given};
  const bool names_its_launch = given == nullptr || given->shown.find(':') != std::string::npos;
  if (names_its_launch) return all;
  for (const auto& [name, launch] : std::span(given->profile.launches).subspan(1)) {
    auto other = *given;
    other.launch = launch;
    other.shown += ":" + name;
    all.push_back(std::make_shared<const forecast::Software>(std::move(other)));
  }
  return all;
}

/// The sum of squared logarithms of measured over predicted on the machine as it should be, where every call takes so
/// much longer.
double gap_with(const Tables& tables, std::span<const double> predicted, double delay) {
  double gap = 0;
  auto time = predicted.begin();
  for (const diagnose::Evidence& each : tables.evidence) {
    for (const diagnose::Point& point : each.points) {
      const double parted = std::log(point.seconds / (*time++ + delay));
      gap += parted * parted;
    }
  }
  return gap;
}

Result<std::vector<double>> predict_healthy(const Tables& tables, DiagnosisRuns& runs) {
  std::vector<double> all;
  for (const diagnose::Evidence& each : tables.evidence) {
    std::vector<Bytes> sizes;
    for (const diagnose::Point& point : each.points) sizes.push_back(point.size);
    const auto times = runs.predict(each.question, {}, sizes);
    if (!times) return tl::unexpected(times.error());
    all.insert(all.end(), times->begin(), times->end());
  }
  return all;
}

/// How calls were started, where the command line does not say: as fits best what was measured. A launch is no fault;
/// but it is no explanation either where a rank that comes late to the given one fits far better.
Result<std::unique_ptr<DiagnosisRuns>> runs_that_fit(const Console& console, const Topology& machine,
                                                     const Tables& tables,
                                                     const std::shared_ptr<const forecast::Software>& given) {
  std::unique_ptr<DiagnosisRuns> best;
  double min_gap = 0, min_late = std::numeric_limits<double>::infinity();
  for (const auto& software : launches_of(given)) {
    auto runs = std::make_unique<DiagnosisRuns>(machine, software);
    const auto times = predict_healthy(tables, *runs);
    if (!times) return tl::unexpected(times.error());
    constexpr double first = 1e-6, last = 0.1, ratio = 1.1;
    for (double delay = first; best == nullptr && delay < last; delay *= ratio) {
      min_late = std::min(min_late, gap_with(tables, *times, delay));
    }
    const double gap = gap_with(tables, *times, 0);
    constexpr double far_better = 4;
    if (best != nullptr && (gap >= min_gap || gap > far_better * min_late)) continue;
    min_gap = gap;
    best = std::move(runs);
  }
  if (best->software() != given) {
    console.note(fmt::format("calls start as of {}, which fits better than {}", best->software()->shown, given->shown));
  }
  return best;
}

/// What tells the first suspect from the parts that measure the same.
std::optional<diagnose::NextTest> next_test_for(const Topology& machine, const diagnose::Diagnosis& diagnosis,
                                                const diagnose::Predict& predict) {
  if (diagnosis.suspects.empty()) return std::nullopt;
  const diagnose::Suspect& first = diagnosis.suspects.front();
  std::vector<std::string> parts = first.alike;
  parts.insert(parts.end(), first.same_predictions.begin(), first.same_predictions.end());
  if (parts.size() < 2) return std::nullopt;
  diagnose::Fault fault = first.fault;
  diagnose::Question like = diagnosis.worst->question;
  const Bytes size = diagnosis.worst->points[diagnosis.worst_point].size;
  return diagnose::find_next_test(machine, parts, fault, like, size, predict);
}

ExitCode refuse_stop(const Console& console, const Stop& why) {
  if (why.is_shown) return why.is_usage ? ExitCode::wrong_usage : ExitCode::check_failed;
  return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
}

ExitCode run(const Console& console, const DiagnoseFlags& flags) {
  const auto machine = load_machine(console, flags.machine);
  if (!machine) return refuse(console, machine.error());
  ConditionFlags conditions;
  conditions.protocol = flags.protocol;
  const auto chosen = flags.profile.resolve(conditions, machine->profile);
  if (!chosen) return console.refuse_usage(chosen.error());
  const std::string usual = !flags.algorithm.empty() ? flags.algorithm : *chosen != nullptr ? "nccl" : "auto";
  const auto tables = load_tables(console, flags, machine->topology, usual);
  if (!tables) return refuse_stop(console, tables.error());

  const auto fitting = runs_that_fit(console, machine->topology, *tables, *chosen);
  if (!fitting) return console.refuse(fitting.error());
  DiagnosisRuns& runs = **fitting;
  const diagnose::Predict predict = [&](const diagnose::Question& question, std::span<const diagnose::Fault> faults,
                                        std::span<const Bytes> sizes) { return runs.predict(question, faults, sizes); };
  std::optional<Progress> progress(std::in_place, console, "suspecting", 0);
  diagnose::DiagnoseOptions options;
  options.threads = usable_threads();
  options.on_step = [&](const std::string& what) { progress->step(what); };
  const auto diagnosis =
      diagnose::diagnose(tables->evidence, diagnose::find_fault_classes(tables->tested), predict, options);
  if (!diagnosis) return console.refuse(diagnosis.error());
  DiagnosisReport report{flags.machine.argument,
                         runs.software() != nullptr ? runs.software()->shown : "",
                         tables->rows(),
                         &*diagnosis,
                         next_test_for(machine->topology, *diagnosis, predict),
                         find_too_fast(*tables, runs)};
  progress.reset();
  if (console.csv) {
    console.print_bytes(suspects_table(*diagnosis).csv());
  } else {
    console.print(console.json ? json_text(diagnosis_json(report)) : diagnosis_text(report));
  }
  return ExitCode::ok;
}

}  // namespace

void add_diagnose_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<DiagnoseFlags>();
  CLI::App* command = app.add_subcommand("diagnose", "Name the part that makes a machine slower than it should be");
  flags->machine.add_to(*command, "MACHINE");
  flags->machine.add_damage_to(*command);
  command
      ->add_option("FILE", flags->files,
                   "What was measured, as compare reads it; FILE@NODES was measured on these ranks alone")
      ->required();
  command
      ->add_option("-a,--algorithm", flags->algorithm,
                   "What ran where a file does not say (nccl under a profile, else auto)")
      ->option_text("NAME");
  command
      ->add_option("--collective", flags->collective,
                   "What nccl-tests measured, where neither its output nor the file's name says so")
      ->option_text("NAME");
  flags->profile.add_to(*command);
  command->add_option("--protocol", flags->protocol, "With a profile: simple, ll or ll128 alone")->option_text("NAME");
  add_csv_to(*command, session.console);
  command->footer(examples({"espalier diagnose dgx-h100-x4 all_reduce_perf.log",
                            "espalier diagnose dgx-h100-x4 all_reduce.txt alltoall.txt --json",
                            "espalier diagnose dgx-a100-x2 all_reduce.txt 'one-box.txt@box0.gpu[0-7]'",
                            "espalier diagnose cluster.yaml measured.json --profile ideal -a ring"}) +
                  "\nEvery single part, and pairs, are held against what was measured (docs/diagnose.md). A machine "
                  "without suspects\n"
                  "does what the profile predicts, within the accuracy of such predictions.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
