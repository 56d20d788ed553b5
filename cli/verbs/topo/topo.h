#pragma once

// Tested by: tests/options/options_test.py

#include "cli/verbs/commands.h"

namespace espalier::cli {

/// `topo gen`, below the verb `topo`.
void add_topo_gen_command(CLI::App& topo, Session& session);
/// `topo import`.
void add_topo_import_command(CLI::App& topo, Session& session);
/// `topo detect`.
void add_topo_detect_command(CLI::App& topo, Session& session);
/// `topo degrade`.
void add_topo_degrade_command(CLI::App& topo, Session& session);

}  // namespace espalier::cli
