#pragma once

#include <string>
#include <utility>

#include "base/check.h"
#include "topology/yaml/read_topology.h"

namespace espalier::test {

/// A machine of configs/, by its name.
inline Topology shipped_machine(const std::string& name) {
  TopologyReading reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + name + ".yaml");
  ESPALIER_CHECK(reading.topology.has_value(), "a shipped machine reads");
  return std::move(*reading.topology);
}

}  // namespace espalier::test
