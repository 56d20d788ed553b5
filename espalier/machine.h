#pragma once

// Tested by: tests/unit/espalier/forecast_test.cpp

#include <string>

#include "base/result.h"
#include "topology/topology.h"
#include "topology/yaml/read_topology.h"

namespace espalier {

/// A network, and what software runs there.
struct Machine {
  Topology topology;
  std::string profile = {};  ///< A shipped profile's name or a file; empty: links alone (docs/profiles.md).
};

/// Reads a machine: a YAML file, or a shipped one by its name ("dgx-h100-x4"). `parameters` are those of a compact
/// file:
/// {{"boxes", "8"}}. Errors: invalid_input with file:line:column of the first fault; unavailable where there is neither
/// such a file nor such a machine.
Result<Machine> read_machine(const std::string& name_or_file, const TopologyParameters& parameters = {});

/// A profile that is named as a file is one beside the machine's, in `folder`.
void find_profile_beside(TopologyReading& reading, const std::string& folder);

}  // namespace espalier
