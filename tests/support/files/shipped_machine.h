#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "topology/yaml/read_topology.h"

namespace espalier::test {

/// The names of the machines of configs/, sorted.
inline std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A machine of configs/, by its name.
inline Topology shipped_machine(const std::string& name) {
  TopologyReading reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + name + ".yaml");
  ESPALIER_CHECK(reading.topology.has_value(), "a shipped machine reads");
  return std::move(*reading.topology);
}

}  // namespace espalier::test
