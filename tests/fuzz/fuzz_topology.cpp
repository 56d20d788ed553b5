// Any bytes are read without harm; what is read as a topology is written and read back equal.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const ExpansionLimits limits{.nodes = 300, .links = 3000, .steps = 20'000};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const TopologyReading reading = read_topology_text(text, "fuzz", std::nullopt, {}, limits);
  ESPALIER_CHECK(reading.topology.has_value() != has_errors(reading.diagnostics), "either a topology or errors");
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    ESPALIER_CHECK(!diagnostic.code.empty() && !diagnostic.message.empty(), "an error says what is wrong");
    ESPALIER_CHECK(!render(diagnostic, true).empty(), "an error can be shown");
  }
  constexpr std::size_t max_written = 500;
  if (!reading.topology || reading.topology->link_count() > max_written) return 0;
  const std::string written = write_topology(*reading.topology);
  const TopologyReading again = read_topology_text(written, "written");
  ESPALIER_CHECK(again.topology.has_value(), "what is written can be read");
  ESPALIER_CHECK(write_topology(*again.topology) == written, "reading what was written changes nothing");
  const TopologyReading json = read_topology_text(write_topology_json(*reading.topology), "written");
  ESPALIER_CHECK(json.topology.has_value(), "what is written as JSON can be read");
  ESPALIER_CHECK(write_topology(*json.topology) == written, "JSON says the same");
  return 0;
}
