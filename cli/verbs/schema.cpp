#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

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
};

ExitCode list_schemas(const Console& console) {
  nlohmann::ordered_json names = nlohmann::ordered_json::array();
  std::string text;
  for (const ShippedSchema& schema : shipped_schemas) {
    names.push_back(schema.name);
    text += fmt::format("{:<9} {}\n", schema.name, schema.what);
  }
  console.print(console.json ? json_text({{"schema", "espalier/schemas/1"}, {"schemas", names}}) : text);
  return ExitCode::ok;
}

ExitCode print_schema(const Console& console, const std::string& name) {
  if (name.empty()) return list_schemas(console);
  std::vector<std::string_view> names;
  for (const ShippedSchema& schema : shipped_schemas) {
    names.push_back(schema.name);
    if (schema.name != name) continue;
    const auto text = read_whole(console, shipped_file(std::string(schema.file)));
    if (!text) return console.refuse(text.error());
    console.print(*text);
    return ExitCode::ok;
  }
  return console.refuse_usage(
      {ErrorCode::invalid_input, fmt::format("there is no schema '{}'", name.substr(0, 60)), suggest(name, names)});
}

}  // namespace

void add_schema_command(CLI::App& app, Session& session) {
  const auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("schema", "Print the JSON Schema of a kind of file, or list them");
  command->add_option("NAME", *name, "topology, plan or scenario");
  command->footer(examples({"espalier schema", "espalier schema plan > plan.schema.json"}));
  command->callback(
      [name, &session] { session.run = [name, &session] { return print_schema(session.console, *name); }; });
}

}  // namespace espalier::cli
