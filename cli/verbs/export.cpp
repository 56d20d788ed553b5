#include <fmt/format.h>

#include "base/counted.h"
#include "base/element.h"
#include "cli/flags/inputs.h"
#include "cli/flags/sizes.h"
#include "cli/flags/usage_error.h"
#include "cli/output/output_file.h"
#include "cli/verbs/commands.h"
#include "schedule/formats/formats.h"
#include "schedule/verify/verify.h"

namespace espalier::cli {
namespace {

struct ExportFlags {
  std::string plan;
  std::string topology;
  std::string format;
  std::string dialect;
  std::string output = "-";
  SizeFlags size;
};

const ScheduleFormat* find_schedule_format(const std::string& name) {
  for (const ScheduleFormat& format : schedule_formats()) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

/// Options that would do nothing for the format, or that it lacks.
std::optional<Error> find_misfit(const ExportFlags& flags) {
  const ScheduleFormat* const format = find_schedule_format(flags.format);
  if (format == nullptr) return std::nullopt;  // For the library to refuse.
  if (format->needs_size && flags.size.single.empty()) {
    return Error{ErrorCode::invalid_input, flags.format + " has bytes where a plan has shares", "add -s SIZE"};
  }
  if (!format->needs_size && (!flags.size.single.empty() || flags.size.type != SizeFlags().type)) {
    return Error{ErrorCode::invalid_input, flags.format + " has shares, as a plan has: -s and -d change nothing",
                 "leave them out"};
  }
  if (!flags.dialect.empty() && flags.format != "msccl") {
    return Error{ErrorCode::invalid_input, "--dialect is of msccl, and --as is " + flags.format, "leave --dialect out"};
  }
  if (format->is_many && flags.output == "-") {
    return Error{ErrorCode::invalid_input, flags.format + " has a file per rank",
                 "add -o NAME: NAME.0.et, NAME.1.et, ..."};
  }
  return std::nullopt;
}

Result<ExportOptions> make_options(const ExportFlags& flags) {
  ExportOptions options;
  options.name = flags.output;
  if (!flags.dialect.empty()) options.dialect = flags.dialect;
  const auto type = parse_element_type(flags.size.type);
  if (!type) return tl::unexpected(type.error());
  options.element_size = size_of(*type);
  if (flags.size.single.empty()) return options;
  const auto size = parse_one_size(flags.size, *type);
  if (!size) return tl::unexpected(size.error());
  options.size = *size;
  return options;
}

ExitCode run_export(const Console& console, const ExportFlags& flags) {
  if (console.json) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 "--json does not apply to export: --as names the form of what is written",
                                 "leave it out"});
  }
  if (const auto misfit = find_misfit(flags)) return console.refuse_usage(*misfit);
  const auto options = make_options(flags);
  if (!options) return console.refuse_usage(options.error());
  const auto input = load_input(console, TopologyFlags{.argument = flags.plan}, flags.topology);
  if (!input) return refuse(console, input.error());
  if (!input->schedule) {
    return console.refuse_usage(
        {ErrorCode::invalid_input, flags.plan + " is a topology, not a plan", "espalier plan ... -o makes plans"});
  }
  const auto verified = require_verified(*input->schedule, input->topology, flags.plan);
  if (!verified) return console.refuse(verified.error());
  const auto files = export_schedule(*input->schedule, input->topology, flags.format, *options);
  if (!files) return console.refuse(files.error());
  for (const ExportedFile& file : *files) {
    const auto written = write_file(flags.output + file.suffix, [&](std::ostream& stream) -> Result<void> {
      stream << file.bytes;
      return {};
    });
    if (!written) return console.refuse(written.error());
  }
  for (const std::string& lost : files->front().lost) console.note(lost);
  if (flags.output != "-") {
    console.note(files->size() == 1
                     ? "wrote " + flags.output
                     : fmt::format("wrote {}, {} to {}{}", counted(files->size(), "file"),
                                   flags.output + files->front().suffix, flags.output, files->back().suffix));
  }
  return ExitCode::ok;
}

}  // namespace

void add_export_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ExportFlags>();
  CLI::App* command = app.add_subcommand("export", "Write a plan in the form of another tool");
  command->add_option("PLAN", flags->plan, "Plan file (JSON), or -")->required();
  command->add_option("-t,--topology", flags->topology, "Use this topology instead of the plan's own");
  command->add_option("--as", flags->format, "The form, of those below")->option_text("FORMAT")->required();
  command->add_option("--dialect", flags->dialect, "Of MSCCL XML: msccl (default), rccl or astra")->option_text("NAME");
  flags->size.add_one_to(*command);
  command->add_option("-o,--output", flags->output, "Write to this file (- is standard output)")->option_text("FILE");
  std::string formats = "Formats (docs/formats.md):\n";
  for (const ScheduleFormat& format : schedule_formats()) {
    formats += fmt::format("  {:<10} {}{}\n", format.name, format.what, format.needs_size ? "; needs -s" : "");
  }
  command->footer(formats + examples({"espalier plan dgx1v all_gather -a ring -o - | espalier export - --as msccl",
                                      "espalier export plan.json --as mscclpp -o mscclpp-plan.json",
                                      "espalier export plan.json --as goal -s 64M -o plan.goal",
                                      "espalier export plan.json --as chakra -s 64M -o step",
                                      "espalier export plan.json --as astra-sim -s 64M -o ours",
                                      "espalier export plan.json --as nccl-graph -o rings.xml",
                                      "espalier export plan.json --as svg -o plan.svg"}));
  command->callback(
      [flags, &session] { session.run = [flags, &session] { return run_export(session.console, *flags); }; });
}

}  // namespace espalier::cli
