#pragma once

// Tested by: tests/unit/cli/flags/modes_test.cpp

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "base/result.h"

namespace espalier::cli {

/// What is wrong with words that CLI11 could not parse, with the nearest verb or option where one was misspelled.
/// `words` are those of the command line without the program's name.
Error usage_error(const CLI::App& app, const CLI::ParseError& error, std::span<const std::string> words);

/// The verb, or the verb of verbs such as `topo`, that the words name and that needs another verb behind it which is
/// not there; nothing when the words name a whole one, or a wrong one.
const CLI::App* find_unfinished(const CLI::App& app, std::span<const std::string> words);

}  // namespace espalier::cli
