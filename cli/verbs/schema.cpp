#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/suggest.h"
#include "cli/flags/inputs.h"
#include "cli/output/json_text.h"
#include "cli/verbs/commands.h"

namespace espalier::cli {
namespace {

struct ShippedSchema {
  std::string_view name;
  std::string_view file;  ///< Among the shipped configurations.
  std::string_view what;
};

constexpr std::array shipped_schemas = {
    ShippedSchema{"topology", "espalier.schema.json", "machines, espalier: 1 (docs/topology.md)"},
    ShippedSchema{"plan", "plan.schema.json", "schedules, espalier_schedule: 1 (docs/schedule.md)"},
    ShippedSchema{"scenario", "scenarios/scenario.schema.json", "scenarios, espalier_scenario: 1 (docs/scenarios.md)"},
    ShippedSchema{"profile", "profiles/profile.schema.json", "profiles, espalier_profile: 1 (docs/profiles.md)"},
    ShippedSchema{"sweep", "sweep.schema.json", "what sweep --spec takes (docs/sweeps.md)"},
    ShippedSchema{"timeline", "timeline.schema.json",
                  "Chrome traces of --trace, espalier_timeline: 1 (docs/timeline.md)"},
};

/// Documents that --json prints, by the value of their key "schema"; their schemas are in documents/.
constexpr std::array documents = {
    "bound/1",
    "bounds/1",
    "plan/1",
    "verify/1",
    "results/1",
    "scenario/1",
    "explain/1",
    "tune/1",
    "nccl/1",
    "degrade/1",
    "designs/1",
    "diagnosis/1",
    "stragglers/1",
    "probe/1",
    "probe-plan/1",
    "explain-measured/1",
    "explain-scenario/1",
    "sweep/4",
    "topology/1",
    "machines/1",
    "schemas/1",
    "version/1",
    "sweep-count/1",
    "gpus/1",
    "experts/1",
    "group-bounds/1",
    "provenance/1",
    "doctor/1",
    "calibration/1",
    "compare/1",
    "group-plans/1",
    "lab/1",
    "lab-clean/1",
    "parallelisms/1",
    "profile-calibration/1",
    "report/1",
    "scenario-sweep/3",
    "sweep-merge/1",
    "sweep-summary/1",
};

ExitCode list_schemas(const Console& console) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  std::string text;
  for (const ShippedSchema& schema : shipped_schemas) {
    names.push_back(schema.name);
    text += fmt::format("{:<9} {}\n", schema.name, schema.what);
  }
  text += "Documents that --json prints:\n";
  for (const std::string_view document : documents) {
    const std::string name = "espalier/" + std::string(document);
    names.push_back(name);
    text += name + "\n";
  }
  console.print(console.json ? json_text({{"schema", "espalier/schemas/1"}, {"schemas", names}}) : text);
  return ExitCode::ok;
}

/// The file of a schema among the shipped ones, or nothing.
std::optional<std::string> file_of(const std::string& name) {
  for (const ShippedSchema& schema : shipped_schemas) {
    if (schema.name == name) return std::string(schema.file);
  }
  for (const std::string_view document : documents) {
    if (name == "espalier/" + std::string(document)) {
      return "documents/" + std::string(document.substr(0, document.find('/'))) + ".schema.json";
    }
  }
  return std::nullopt;
}

ExitCode print_schema(const Console& console, const std::string& name) {
  if (name.empty()) return list_schemas(console);
  if (const auto file = file_of(name)) {
    const auto text = read_whole(console, shipped_file(*file));
    if (!text) return console.refuse(text.error());
    console.print(*text);
    return ExitCode::ok;
  }
  std::vector<std::string> known;
  for (const ShippedSchema& schema : shipped_schemas) known.emplace_back(schema.name);
  for (const std::string_view document : documents) known.push_back("espalier/" + std::string(document));
  const std::vector<std::string_view> names(known.begin(), known.end());
  return console.refuse_usage(
      {ErrorCode::invalid_input, fmt::format("there is no schema '{}'", name.substr(0, 60)), suggest(name, names)});
}

}  // namespace

void add_schema_command(CLI::App& app, Session& session) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of a kind of file, or list them");
  command->add_option("NAME", *name,
                      "topology, plan, scenario, profile, sweep, timeline, or a document's: espalier/bound/1");
  command->footer(
      examples({"espalier schema", "espalier schema plan > plan.schema.json", "espalier schema espalier/results/1"}));
  command->callback(
      [name, &session] { session.run = [name, &session] { return print_schema(session.console, *name); }; });
}

}  // namespace espalier::cli
