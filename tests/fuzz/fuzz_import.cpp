// Any bytes are imported without harm, whatever format they are said to be in: the first byte says which, or that it is
// to be recognised. What comes of it is written and read back equal.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "topology/import/import.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  if (size == 0) return 0;
  const auto formats = import_formats();
  ImportOptions options;
  const std::size_t chosen = data[0] & 0x7FU;  // Past the last format: it is to be recognised.
  if (chosen < formats.size()) options.as = formats[chosen].name;
  options.boxes = (data[0] & 0x80U) != 0 ? 2 : 1;
  options.in_network = options.boxes > 1;
  const std::array files{ImportFile{"fuzz", {reinterpret_cast<const char*>(data) + 1, size - 1}}};
  const auto imported = import_topology(files, options);
  if (!imported) {
    ESPALIER_CHECK(!imported.error().message.empty(), "a refusal says why");
    return 0;
  }
  constexpr std::size_t max_written = 500;
  if (imported->topology.link_count() > max_written) return 0;
  const std::string written = write_topology(imported->topology, imported->provenance);
  const TopologyReading again = read_topology_text(written, "written");
  ESPALIER_CHECK(again.topology.has_value(), "what is imported can be read");
  ESPALIER_CHECK(write_topology(*again.topology, again.provenance) == written,
                 "reading what was written changes nothing");
  return 0;
}
