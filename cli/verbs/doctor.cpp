#include "cli/flags/modes.h"
#include "cli/output/json_text.h"
#include "cli/reports/doctor_output.h"
#include "cli/verbs/commands.h"

namespace espalier::cli {

void add_doctor_command(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("doctor", "What this machine has and lacks for the engine, each with the fix");
  command->footer(
      examples({"espalier doctor", "espalier doctor --json"}) +
      "\nExit code 3 when something is missing that the engine needs; what only makes it faster, or the lab\n"
      "possible, is no error.");
  add_csv_to(*command, session.console);
  command->callback([&session] {
    session.run = [&session] {
      const std::vector<engine::doctor::Check> checks =
          engine::doctor::check_machine(engine::doctor::read_machine_facts(""), engine::doctor::probe_machine());
      if (session.console.csv) {
        session.console.print_bytes(doctor_table(checks).csv());
        return engine::doctor::can_run_engine(checks) ? ExitCode::ok : ExitCode::missing_capability;
      }
      session.console.print(session.console.json ? json_text(doctor_json(checks)) : doctor_text(checks));
      return engine::doctor::can_run_engine(checks) ? ExitCode::ok : ExitCode::missing_capability;
    };
  });
}

}  // namespace espalier::cli
