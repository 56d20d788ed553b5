#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::cli {

/// The COLLECTIVE argument and its flags -r and --shares.
struct CollectiveFlags {
  std::string name;
  std::string root;    ///< A rank's number or its node id; empty for rank 0.
  std::string shares;  ///< Whole numbers parted by commas, one per rank; empty for equal shards.

  /// Adds all to a verb.
  void add_to(CLI::App& command, bool required);

  /// Whether a plan is of the collective that was named, if one was: an error if not.
  [[nodiscard]] std::optional<Error> find_contradiction(const Collective& of_plan) const;

  /// Errors: invalid_input, naming what is wrong; the caller reports it as wrong usage.
  [[nodiscard]] Result<Collective> resolve(const Topology& topology) const;
};

/// Its options for a Mode (modes.h).
inline constexpr std::array<std::string_view, 3> collective_options = {"COLLECTIVE", "--root", "--shares"};

/// "  shares 3,1,1" for the head of a table; nothing where shards are equal.
std::string shares_text(const Collective& collective);

}  // namespace espalier::cli
