#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::cli {

/// The COLLECTIVE argument and its -r flag.
struct CollectiveFlags {
  std::string name;
  std::string root;  ///< A rank's number or its node id; empty for rank 0.

  /// Adds both to a verb.
  void add_to(CLI::App& command, bool required);

  /// Errors: invalid_input, naming what is wrong; the caller reports it as wrong usage.
  [[nodiscard]] Result<Collective> resolve(const Topology& topology) const;
};

}  // namespace espalier::cli
