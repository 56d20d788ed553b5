#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "topology/yaml/read_topology.h"

namespace espalier::test {

/// All diagnostics as the command shows them.
inline std::string messages(const TopologyReading& reading) {
  std::string text;
  for (const Diagnostic& diagnostic : reading.diagnostics) text += render(diagnostic, false);
  return text;
}

/// The topology of a text that must be read without a word.
inline Topology read_good(std::string_view text, const TopologyParameters& parameters = {}) {
  TopologyReading reading = read_topology_text(text, "test.yaml", std::nullopt, parameters);
  EXPECT_TRUE(reading.topology.has_value());
  EXPECT_EQ(messages(reading), "");
  if (!reading.topology) return *Topology::make("none", {{.id = "none"}}, {});
  return *std::move(reading.topology);
}

}  // namespace espalier::test
