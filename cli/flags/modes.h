#pragma once

// Tested by: tests/unit/cli/flags/modes_test.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output/console.h"

namespace espalier::cli {

/// One way of using a verb, such as simulating a plan: the options that it honours, and why it honours no others. An
/// option that no mode of its verb lists is refused in all of them, so that none is ever accepted and ignored.
struct Mode {
  std::string what;                       ///< "a plan", as in "--shares does not apply to a plan".
  std::string why;                        ///< "its collective, root and shares are given".
  std::vector<std::string_view> options;  ///< By any of their names; arguments by theirs, such as COLLECTIVE.
  std::string help;                       ///< Empty: leave the option out.
};

/// Adds --csv to a verb that prints a table.
void add_csv_to(CLI::App& command, Console& console);
/// --csv for a Mode.
inline constexpr std::array<std::string_view, 1> csv_option = {"--csv"};

/// Lists of option names, one behind the other.
std::vector<std::string_view> join_options(std::initializer_list<std::span<const std::string_view>> lists);

/// The first option on the command line that the mode does not honour, as an error; nothing when it honours all.
std::optional<Error> find_idle_option(const CLI::App& command, const Mode& mode);

/// Whether the option or argument of that name was given.
bool was_given(const CLI::App& command, const std::string& name);

}  // namespace espalier::cli
