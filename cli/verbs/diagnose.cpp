#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>

#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/run_files.h"
#include "cli/measured/diagnosis_job.h"
#include "cli/measured/diagnosis_output.h"
#include "cli/measured/stragglers_output.h"
#include "cli/output/json_text.h"
#include "cli/verbs/commands.h"
#include "compare/compare_results.h"
#include "compare/read/port_counters.h"

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

OrStop<DiagnosisTables> load_tables(const Console& console, const DiagnoseFlags& flags, const Topology& machine,
                                    const std::string& usual_algorithm) {
  DiagnosisTables tables;
  for (const std::string& argument : flags.files) {
    const FileArgument file = parse_file(argument);
    if (file.path != "-") {
      const auto text = read_whole(console, file.path);
      if (!text) return stop(text.error());
      if (compare::has_port_counters(*text)) {
        const auto troubles = compare::read_port_counters(*text, file.path);
        if (!troubles) return stop(troubles.error());
        auto counted = find_counted_parts(machine, *troubles, file.ranks, file.path);
        if (!counted) return tl::unexpected(counted.error());
        std::ranges::move(counted->parts, std::back_inserter(tables.counted));
        std::ranges::move(counted->unknown, std::back_inserter(tables.unknown_devices));
        continue;
      }
    }
    const auto runs = load_runs(console, {file.path}, flags.collective);
    if (!runs) return tl::unexpected(runs.error());
    const compare::RunFile& run = runs->front().second;
    const auto* timeline = std::get_if<Timeline>(&run);
    const auto table = timeline != nullptr ? compare::measurements_of(*timeline, file.path)
                                           : Result<compare::Measurements>(std::get<compare::Measurements>(run));
    if (!table) return stop(table.error());
    if (auto added = tables.add(machine, *table, file.ranks, usual_algorithm); !added) {
      return tl::unexpected(added.error());
    }
  }
  if (tables.evidence.empty()) {
    return usage(
        {ErrorCode::invalid_input, "counters alone say nothing of times", "name a file of measured times beside them"});
  }
  return tables;
}

ExitCode refuse_stop(const Console& console, const Stop& why) {
  if (why.is_shown) return why.is_usage ? ExitCode::wrong_usage : ExitCode::check_failed;
  return why.is_usage ? console.refuse_usage(why.error) : console.refuse(why.error);
}

/// The records of several ranks' collectives, where all files are such; else nothing.
OrStop<std::vector<compare::RankCalls>> load_records(const Console& console, const DiagnoseFlags& flags) {
  std::vector<compare::RankCalls> records;
  std::set<std::uint32_t> ranks;
  if (flags.files.size() < 2) return records;
  for (const std::string& file : flags.files) {
    if (file == "-") return std::vector<compare::RankCalls>();
    const auto text = read_whole(console, parse_file(file).path);
    if (!text) return stop(text.error());
    if (!compare::is_rank_record(*text)) return std::vector<compare::RankCalls>();
    auto record = compare::read_rank_calls(*text, file, static_cast<std::uint32_t>(records.size()));
    if (!record) return stop(record.error());
    if (!ranks.insert(record->rank).second) {
      return stop({ErrorCode::invalid_input, fmt::format("{}: a second record of rank {}", file, record->rank),
                   "name one file for each rank"});
    }
    records.push_back(std::move(*record));
  }
  return records;
}

ExitCode show_stragglers(const Console& console, const Topology& machine,
                         const std::vector<compare::RankCalls>& records) {
  const compare::Stragglers found = compare::find_stragglers(records);
  if (found.calls == 0) {
    return console.refuse({ErrorCode::invalid_input, "no two of these records have a call in common",
                           "name records of one run, of ranks that are in a group"});
  }
  if (console.csv) {
    console.print_bytes(stragglers_table(found, machine).csv());
  } else {
    console.print(console.json ? json_text(stragglers_json(found, machine)) : stragglers_text(found, machine));
  }
  return ExitCode::ok;
}

ExitCode run(const Console& console, const DiagnoseFlags& flags) {
  const auto machine = load_machine(console, flags.machine);
  if (!machine) return refuse(console, machine.error());
  const auto records = load_records(console, flags);
  if (!records) return refuse_stop(console, records.error());
  if (!records->empty()) return show_stragglers(console, machine->topology, *records);
  ConditionFlags conditions;
  conditions.protocol = flags.protocol;
  const auto chosen = flags.profile.resolve(conditions, machine->profile);
  if (!chosen) return console.refuse_usage(chosen.error());
  const std::string usual = !flags.algorithm.empty() ? flags.algorithm : *chosen != nullptr ? "nccl" : "auto";
  const auto tables = load_tables(console, flags, machine->topology, usual);
  if (!tables) return refuse_stop(console, tables.error());

  const auto diagnosed = diagnose_tables(console, machine->topology, *tables, *chosen);
  if (!diagnosed) return console.refuse(diagnosed.error());
  const DiagnosisReport report{flags.machine.argument, diagnosed->software != nullptr ? diagnosed->software->shown : "",
                               tables->rows(),         &diagnosed->diagnosis,
                               diagnosed->next_test,   diagnosed->too_fast,
                               tables->counted,        tables->unknown_devices};
  if (console.csv) {
    console.print_bytes(suspects_table(diagnosed->diagnosis).csv());
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
                   "What was measured, as compare reads it (FILE@NODES: on these ranks alone), and port counters of "
                   "nvidia-smi nvlink, "
                   "perfquery, ibqueryerrors or ibdiagnet (FILE@HOST or @PART: of this one)")
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
  command->footer(
      examples({"espalier simulate dgx-a100-x2 all_reduce -a nccl --json > measured.json && espalier diagnose "
                "dgx-a100-x2 measured.json",
                "espalier diagnose dgx-h100-x4 all_reduce_perf.log",
                "espalier diagnose dgx-h100-x4 all_reduce.txt alltoall.txt --json",
                "espalier diagnose dgx-a100-x2 all_reduce.txt 'one-box.txt@box0.gpu[0-7]'",
                "espalier diagnose cluster.yaml measured.json --profile ideal -a ring",
                "espalier diagnose dgx-h100 trace.rank0.json trace.rank1.json trace.rank2.json"}) +
      "\nEvery single part, and pairs, are held against what was measured (docs/diagnose.md). A machine "
      "without suspects\n"
      "does what the profile predicts, within the accuracy of such predictions. Where all files are traces "
      "of PyTorch's "
      "profiler or dumps of\n"
      "its flight recorder, of a rank each, it says which rank comes late to which collective instead.");
  command->callback([flags, &session] { session.run = [flags, &session] { return run(session.console, *flags); }; });
}

}  // namespace espalier::cli
