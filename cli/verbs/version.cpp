#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs/commands.h"

namespace espalier::cli {

void print_version(const Console& console) {
  const nlohmann::ordered_json document = {{"schema", "espalier/version/1"}, {"version", ESPALIER_VERSION}};
  console.print(console.json ? document.dump() + "\n" : fmt::format("espalier {}\n", ESPALIER_VERSION));
}

void add_version_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer(examples({"espalier version", "espalier --version", "espalier version --json"}));
  command->callback([&session] {
    session.run = [&session] {
      print_version(session.console);
      return ExitCode::ok;
    };
  });
}

}  // namespace espalier::cli
