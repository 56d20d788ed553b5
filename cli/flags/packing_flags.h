#pragma once

// Tested by: tests/unit/cli/flags_test.cpp

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>

#include "planners/packing/pruned_packing.h"

namespace espalier::cli {

/// --max-trees, --max-depth, --k and --gap: what the planner packing may do.
struct PackingFlags {
  std::uint32_t max_trees = 0;
  std::uint32_t max_height = 0;
  std::uint32_t equal_trees = 0;
  std::string gap;  ///< "1%" or "0.01".

  /// Adds all to a verb.
  void add_to(CLI::App& command);

  /// Errors: invalid_input, naming the flag.
  [[nodiscard]] Result<planners::PackingLimits> resolve() const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 4> packing_options = {"--max-trees", "--max-depth", "--k", "--gap"};

}  // namespace espalier::cli
