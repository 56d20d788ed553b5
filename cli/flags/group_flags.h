#pragma once

// Tested by: tests/options/options_test.py

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags/collective_flags.h"
#include "planners/groups/plan_groups.h"

namespace espalier::cli {

/// The flags that name process groups that all run at once.
struct GroupFlags {
  std::string list;        ///< Lists of nodes parted by semicolons.
  std::size_t of = 0;      ///< Groups of so many neighbouring ranks; 0 when not given.
  std::size_t across = 0;  ///< So many groups, each of every so-many-th rank; 0 when not given.

  void add_to(CLI::App& command);
  [[nodiscard]] bool any() const { return !list.empty() || of > 0 || across > 0; }

  /// The groups with their collective; a root counts within its group.
  /// Errors: invalid_input, naming the flag.
  [[nodiscard]] Result<std::vector<planners::GroupWork>> resolve(const Topology& topology,
                                                                 const CollectiveFlags& collective) const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 3> group_options = {"--groups", "--groups-of", "--groups-across"};

/// "gpu[0-3]" for the head of a table.
std::string ranks_text(const Topology& topology);

}  // namespace espalier::cli
