#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier {

/// What came of reading a topology: the network, or the errors that kept it from being one.
struct TopologyReading {
  std::optional<Topology> topology;  ///< Absent when any diagnostic is an error.
  std::vector<Diagnostic> diagnostics;
  std::vector<ProvenanceRow> provenance;  ///< What the file itself says of where its values came from.
  std::string profile;                    ///< Its `profile` as written: what software runs there; empty: none.
  std::string gpu;  ///< Its `gpu`, a name of compute/gpu.h: what every rank computes on; empty: not said.
};

/// Values for a file's `parameters`, by name, in place of the defaults written there.
using TopologyParameters = std::vector<std::pair<std::string, std::string>>;

/// What a file may expand to at most. The defaults keep a file of unknown origin from filling the memory; lower them to
/// read many such files.
struct ExpansionLimits {
  std::uint64_t nodes = 1'000'000;   ///< Nodes, and separately instances of groups.
  std::uint64_t links = 2'000'000;   ///< Links, each direction counted: four times those of 65,536 GPUs.
  std::uint64_t steps = 50'000'000;  ///< Entries read and names looked up.
};

/// Reads a file of the format `espalier: 1`, plain or compact, YAML or JSON (docs/topology.md). The network is the
/// expanded one. Included files must lie in the file's folder or below it. Several errors are reported at once.
TopologyReading read_topology_file(const std::filesystem::path& path, const TopologyParameters& parameters = {},
                                   const ExpansionLimits& limits = {});

/// As `read_topology_file`, for a text. `name_for_messages` stands for the file in diagnostics. Includes are read from
/// `base`, and refused without one.
TopologyReading read_topology_text(std::string_view text, const std::string& name_for_messages,
                                   const std::optional<std::filesystem::path>& base = std::nullopt,
                                   const TopologyParameters& parameters = {}, const ExpansionLimits& limits = {});

}  // namespace espalier
