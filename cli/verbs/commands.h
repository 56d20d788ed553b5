#pragma once

// Tested by: tests/property/cli/best_test.cpp

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/output/console.h"

namespace espalier::cli {

/// What the flags before and behind a verb set, and what the chosen verb does.
struct Session {
  Console console;
  std::function<ExitCode()> run;
};

// Each adds one verb to the command line; parsing it sets Session::run.
void add_topo_command(CLI::App& app, Session& session);
void add_plan_command(CLI::App& app, Session& session);
void add_bound_command(CLI::App& app, Session& session);
void add_verify_command(CLI::App& app, Session& session);
void add_export_command(CLI::App& app, Session& session);
void add_import_command(CLI::App& app, Session& session);
void add_simulate_command(CLI::App& app, Session& session);
void add_sweep_command(CLI::App& app, Session& session);
void add_merge_command(CLI::App& app, Session& session);
void add_run_command(CLI::App& app, Session& session);
void add_explain_command(CLI::App& app, Session& session);
void add_report_command(CLI::App& app, Session& session);
void add_tune_command(CLI::App& app, Session& session);
void add_nccl_command(CLI::App& app, Session& session);
void add_doctor_command(CLI::App& app, Session& session);
void add_compare_command(CLI::App& app, Session& session);
void add_compare_designs_command(CLI::App& app, Session& session);
void add_calibrate_command(CLI::App& app, Session& session);
void add_compute_command(CLI::App& app, Session& session);
void add_experts_command(CLI::App& app, Session& session);
void add_diagnose_command(CLI::App& app, Session& session);
void add_probe_command(CLI::App& app, Session& session);
void add_lab_command(CLI::App& app, Session& session);
void add_schema_command(CLI::App& app, Session& session);
void add_version_command(CLI::App& app, Session& session);
void add_completion_command(CLI::App& app, Session& session);

/// What `version` and --version print.
void print_version(const Console& console);

/// The help's footer with examples: "Examples:" and one indented line each.
std::string examples(std::initializer_list<std::string_view> lines);

}  // namespace espalier::cli
