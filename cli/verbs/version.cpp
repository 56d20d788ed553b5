#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/verbs/commands.h"

namespace espalier::cli {

void add_version_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer(examples({"espalier version", "espalier version --json"}));
  command->callback([&session] {
    session.run = [&session] {
      if (session.console.json) {
        const nlohmann::ordered_json document = {{"schema", "espalier/version/1"}, {"version", ESPALIER_VERSION}};
        session.console.print(document.dump() + "\n");
      } else {
        session.console.print(fmt::format("espalier {}\n", ESPALIER_VERSION));
      }
      return ExitCode::ok;
    };
  });
}

}  // namespace espalier::cli
