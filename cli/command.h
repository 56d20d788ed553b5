#pragma once

// Tested by: tests/options/options_test.py

#include <string_view>

namespace espalier::cli {

/// What is said when memory runs out, wherever that is.
inline constexpr std::string_view out_of_memory = "error: out of memory\n";

/// The command `espalier` with main's arguments; returns its exit code.
int run_command(int argc, char** argv);

}  // namespace espalier::cli
