#include <fmt/format.h>

#include "base/counted.h"
#include "base/suggest.h"
#include "cli/flags/inputs.h"
#include "cli/output/output_file.h"
#include "cli/verbs/commands.h"
#include "planners/bounds/bound.h"
#include "schedule/formats/formats.h"
#include "schedule/json/schedule_json.h"
#include "schedule/verify/verify.h"
#include "topology/import/known_files.h"

namespace espalier::cli {
namespace {

struct ScheduleImportFlags {
  std::string file;
  TopologyFlags topology;
  std::string collective;  ///< Of NCCL's rings; empty: the file is of MSCCL or MSCCL++.
  std::string as;
  std::optional<ScheduleForm> source;  ///< That `as` names.
  std::string output = "-";
};

/// The format that --as names. Errors: invalid_input, naming those there are; unsupported for those of scenarios.
Result<ScheduleForm> parse_source(const std::string& name) {
  std::vector<std::string_view> names;
  for (const ScheduleForm source : schedule_forms()) {
    names.push_back(to_string(source));
    if (names.back() == name) return source;
  }
  if (name == "chakra" || name == "goal" || name == "kineto") {
    return fail(ErrorCode::unsupported, "--as: import makes plans, and " + name + " has traces",
                "a scenario runs them: training: {trace: NAME} (docs/scenarios.md)");
  }
  return fail(ErrorCode::invalid_input, fmt::format("--as: there is no format '{}'", name.substr(0, 60)),
              suggest(name, names));
}

/// What the file is: as --as says, or as it looks. Errors: unsupported for files that are something else.
Result<ScheduleForm> find_source(const std::string& text, const std::string& name, const ScheduleImportFlags& flags) {
  if (flags.source) return *flags.source;
  const auto source = recognise_schedule(text);
  const auto known = recognise_file(text);
  const bool is_old_dialect = source == ScheduleForm::mscclpp && known && !known->is_schedule;
  if (source && !is_old_dialect) return *source;
  if (known && !known->is_schedule) {
    return fail(ErrorCode::unsupported, name + " is " + std::string(known->what) + ", which import does not read",
                std::string(known->help));
  }
  return fail(ErrorCode::invalid_input, name + " looks like none of the formats that are read",
              "name its format with --as: msccl, mscclpp, nccl-graph or nccl-log");
}

Result<Schedule> read_schedule(const std::string& text, const ScheduleImportFlags& flags, const Topology& topology) {
  const std::string name = flags.file == "-" ? "<stdin>" : flags.file;
  const auto source = find_source(text, name, flags);
  if (!source) return tl::unexpected(source.error());
  if (!has_rings(*source) && flags.collective.empty()) return import_schedule(text, name, topology, *source);
  if (!has_rings(*source)) {
    return fail(ErrorCode::invalid_input,
                fmt::format("--collective is of NCCL's rings, and {} is {}", name, to_string(*source)),
                "leave --collective out: the file says what it does");
  }
  if (flags.collective.empty()) {
    return fail(ErrorCode::invalid_input, name + " has NCCL's rings, which are of no one collective",
                "add --collective all_gather, reduce_scatter or all_reduce");
  }
  const auto kind = parse_collective(flags.collective);
  return kind ? import_nccl_rings(text, name, topology, *kind, *source) : tl::unexpected(kind.error());
}

ExitCode run_import(const Console& console, ScheduleImportFlags flags) {
  if (!flags.as.empty()) {
    const auto source = parse_source(flags.as);
    if (!source) return console.refuse_usage(source.error());
    flags.source = *source;
  }
  const auto topology = load_topology(console, flags.topology);
  if (!topology) return refuse(console, topology.error());
  const auto text = read_whole(console, flags.file);
  if (!text) return console.refuse(text.error());
  auto schedule = read_schedule(*text, flags, *topology);
  if (!schedule) return console.refuse(schedule.error());
  const VerifyReport report = verify(*schedule, *topology, 1);
  if (!report.ok()) {
    return console.refuse({ErrorCode::invalid_input,
                           fmt::format("{} does not do what it says: {}", flags.file,
                                       describe(report.breaches.front(), *schedule, *topology)),
                           "the rules are in docs/schedule.md"});
  }
  if (const std::string missing = missing_nccl_rings(*text, flags.file, *topology); !missing.empty()) {
    console.note(missing);
  }
  if (auto bound = planners::compute_bound(*topology, schedule->collective)) schedule->bound = *std::move(bound);
  const auto written = write_file(
      flags.output, [&](std::ostream& stream) { return write_schedule(stream, *schedule, *topology, WriteOptions{}); });
  if (!written) return console.refuse(written.error());
  if (flags.output != "-") {
    console.note(fmt::format("wrote {} ({} of {}, {}, verified)", flags.output, to_string(schedule->collective.kind),
                             counted(schedule->collective.rank_count, "rank"),
                             counted(schedule->transfers.size(), "transfer")));
  }
  return ExitCode::ok;
}

}  // namespace

void add_import_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ScheduleImportFlags>();
  CLI::App* command =
      app.add_subcommand("import", "Make a plan of a schedule of MSCCL or MSCCL++, or of NCCL's rings, and prove it");
  command
      ->add_option("FILE", flags->file,
                   "MSCCL XML, a plan of MSCCL++, NCCL graph XML, or a log of NCCL_DEBUG=INFO; or -")
      ->required();
  flags->topology.add_to(*command);
  flags->topology.add_damage_to(*command);
  command
      ->add_option("--collective", flags->collective,
                   "What NCCL's rings are to do: all_gather, reduce_scatter or all_reduce")
      ->option_text("NAME");
  command
      ->add_option("--as", flags->as,
                   "Format of the file, in place of recognising it: msccl, mscclpp, nccl-graph, nccl-log")
      ->option_text("FORMAT");
  command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")->option_text("PLAN");
  command->footer(
      examples({"espalier plan dgx1v all_gather -a ring -o - | espalier export - --as msccl | espalier import - dgx1v "
                "-o plan.json",
                "espalier import allreduce.xml cluster.yaml -o plan.json",
                "espalier import mscclpp-plan.json box.yaml -o plan.json",
                "espalier import nccl-graph.xml box.yaml --collective all_reduce -o nccl.json",
                "espalier import nccl-debug.log box.yaml --as nccl-log --collective all_reduce -o nccl.json"}) +
      "\nTransfers take the fastest routes of the topology. Machines are imported by espalier topo import.");
  command->callback(
      [flags, &session] { session.run = [flags, &session] { return run_import(session.console, *flags); }; });
}

}  // namespace espalier::cli
