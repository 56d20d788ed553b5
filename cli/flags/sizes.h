#pragma once

// Tested by: tests/unit/cli/flags_test.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "base/units.h"

namespace espalier::cli {

/// The message sizes of nccl-tests' flags: from -b to -e, multiplied by -f or increased by -i.
struct SizeFlags {
  std::string begin = "1K";
  std::string end = "1G";
  std::string factor = "2";
  std::string step;    ///< Overrides the factor.
  std::string single;  ///< -s: exactly these sizes.
  std::string type = "float";

  /// Adds -b, -e, -f, -i, -s and -d; the defaults in the help are the members' values.
  void add_to(CLI::App& command);
  /// Adds -s and -d only, for verbs that take one size. Returns -s.
  CLI::Option* add_one_to(CLI::App& command);
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 6> size_options = {"--minbytes",  "--maxbytes", "--stepfactor",
                                                                 "--stepbytes", "--size",     "--datatype"};

/// The sizes, smallest first, each rounded down to whole elements as nccl-tests does; at most 1,000 of them. The last
/// is -e, wherever factors and steps lead. Errors: invalid_input, naming the flag.
Result<std::vector<Bytes>> parse_sizes(const SizeFlags& flags, ElementType type);

/// The one size of -s, for verbs that take one. Errors: invalid_input, naming the flag.
Result<Bytes> parse_one_size(const SizeFlags& flags, ElementType type);

/// Whether the command line names a size, or how sizes follow each other.
bool names_size(const CLI::App& command);

/// A size of a traffic matrix in bytes, rounded up to whole elements.
Bytes whole_elements(Bytes size, ElementType type);

/// The rounds of --ahead; nothing when the text is empty. Errors: invalid_input, naming the flag.
Result<std::optional<std::uint32_t>> parse_ahead(const std::string& text);

}  // namespace espalier::cli
