#pragma once

namespace espalier::cli {

/// The command `espalier` with main's arguments; returns its exit code.
int run_command(int argc, char** argv);

}  // namespace espalier::cli
