#include "cli/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <sstream>

#include "base/parse_units.h"
#include "base/printable.h"
#include "cli/flags/usage_error.h"
#include "cli/output/output_file.h"
#include "cli/verbs/commands.h"

namespace espalier::cli {
namespace {

void add_global_flags(CLI::App& app, Session& session) {
  app.add_flag("--json", session.console.json, "One versioned JSON document on standard output");
  app.add_flag("-q,--quiet", session.console.quiet, "Neither warnings nor progress");
  app.add_option("--color", session.console.colour_choice, "Colours on standard error: auto, always or never")
      ->transform(CLI::CheckedTransformer(std::map<std::string, ColourChoice>{
          {"auto", ColourChoice::automatic}, {"always", ColourChoice::always}, {"never", ColourChoice::never}}))
      ->option_text("WHEN");
  app.add_option_function<std::string>(
         "--max-input",
         [&session](const std::string& text) {
           const auto size = parse_size(text);
           if (!size) throw CLI::ValidationError("--max-input", size.error().message);
           session.console.max_input = *size;
         },
         "Refuse larger input files, and what unpacks to more")
      ->option_text("SIZE (512M)");
  app.set_version_flag("-V,--version", ESPALIER_VERSION, "Print the version");  // Behind --json, which it heeds.
}

void describe(CLI::App& app) {
  app.name("espalier");
  app.description(
      "Plans collective communication on the network a machine really has, predicts it, and says what limits it.");
  app.footer(
      examples({"espalier topo show dgx1v", "espalier bound dgx1v-degraded all_gather",
                "espalier simulate dgx1v-degraded all_gather -b 1K -e 1G -f 4",
                "espalier plan dgx-a100-x2 all_reduce -s 256M -o plan.json", "espalier verify plan.json",
                "espalier explain plan.json", "espalier tune dgx1v all_reduce", "espalier topo degrade dgx1v-nvlink"}) +
      "\nTOPOLOGY is a YAML file, - for standard input, or a shipped machine (espalier topo show --list).\n"
      "Exit codes: 0 fine, 1 a check failed, 2 wrong usage, 3 a capability is missing, 4 a bug, 130 interrupted.");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Help of all verbs");
}

/// What `espalier` alone says: where to begin.
constexpr std::string_view first_steps =
    "espalier plans collective communication on the network a machine really has, predicts it, and says what limits "
    "it.\n"
    "\n"
    "Try, in this order:\n"
    "  espalier topo show --list                                       machines that ship with it\n"
    "  espalier bound dgx1v-degraded all_gather                        what no schedule can beat there, and why\n"
    "  espalier simulate dgx1v-degraded all_gather -b 1K -e 1G -f 4    what wins at which size, and what limits it\n"
    "  espalier report dgx1v-degraded all_gather -o report.html        all of it as one page for a browser\n"
    "  espalier run one-host all_reduce -p ranks=4 -s 1M               the same for real, between processes of this "
    "machine\n"
    "Your own machine: nvidia-smi topo -m | espalier topo import - --preset h100-sxm -o box.yaml, then box.yaml for "
    "its name.\n"
    "\n"
    "espalier --help lists the verbs, espalier VERB --help says what one does, with examples.\n";

/// The exit code of a verb; output that was lost is a failure even where the verb went well.
int finish(const Console& console, ExitCode code) {
  const auto printed = console.check_output();
  if (printed || code != ExitCode::ok) return static_cast<int>(code);
  return static_cast<int>(console.refuse(printed.error()));
}

/// Opens standard streams that are closed, so that no file takes their numbers: reading and writing them then fails.
void occupy_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free number is this one, since those below are open.
    static_cast<void>(open("/dev/null", descriptor == STDOUT_FILENO ? O_RDONLY : O_WRONLY));
  }
}

int run(int argc, char** argv) {
  Session session;
  CLI::App app;
  describe(app);
  add_global_flags(app, session);
  add_topo_command(app, session);
  add_plan_command(app, session);
  add_bound_command(app, session);
  add_verify_command(app, session);
  add_export_command(app, session);
  add_import_command(app, session);
  add_simulate_command(app, session);
  add_sweep_command(app, session);
  add_merge_command(app, session);
  add_run_command(app, session);
  add_explain_command(app, session);
  add_report_command(app, session);
  add_tune_command(app, session);
  add_nccl_command(app, session);
  add_doctor_command(app, session);
  add_compare_command(app, session);
  add_compare_designs_command(app, session);
  add_calibrate_command(app, session);
  add_compute_command(app, session);
  add_experts_command(app, session);
  add_diagnose_command(app, session);
  add_probe_command(app, session);
  add_lab_command(app, session);
  add_schema_command(app, session);
  add_version_command(app, session);
  add_completion_command(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion&) {
    print_version(session.console);
    return finish(session.console, ExitCode::ok);
  } catch (const CLI::Success& asked_for_help) {
    std::ostringstream help;
    const int code = app.exit(asked_for_help, help, help);
    session.console.print(help.str());
    return finish(session.console, static_cast<ExitCode>(code));
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
      Console::write_error(std::string(first_steps));
      return static_cast<int>(ExitCode::wrong_usage);
    }
    if (const CLI::App* const unfinished = find_unfinished(app, words)) {
      Console::write_error(unfinished->help());
      return static_cast<int>(ExitCode::wrong_usage);
    }
    return static_cast<int>(session.console.refuse_usage(usage_error(app, error, words)));
  }
  if (session.console.csv && session.console.json) {
    return static_cast<int>(session.console.refuse_usage(
        {ErrorCode::invalid_input, "--csv and --json would both be printed", "leave one of them out"}));
  }
  return finish(session.console, session.run());
}

}  // namespace

int run_command(int argc, char** argv) {
  occupy_standard_streams();
  install_interrupt_handler();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    Console::write_error(out_of_memory);
    return static_cast<int>(ExitCode::check_failed);
  } catch (const std::exception& bug) {
    Console::write_error(printable(fmt::format("espalier: internal error: {}\n", bug.what())));
    return static_cast<int>(ExitCode::internal_error);
  }
}

}  // namespace espalier::cli
