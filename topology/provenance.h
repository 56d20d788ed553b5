#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace espalier {

/// How a value came to be known, the least trustworthy first.
enum class Origin : std::uint8_t {
  assumed,   ///< A default of the importer's.
  preset,    ///< What the data sheet of the named hardware says.
  captured,  ///< What a tool read from the machine.
  measured,  ///< What a benchmark on the machine gave.
};

/// "assumed", "preset", "captured", "measured".
std::string_view to_string(Origin origin);
/// The inverse of `to_string`; nothing for any other text.
std::optional<Origin> find_origin(std::string_view name);

/// Where one value of the links of one class came from: a row of a topology file's `provenance`.
struct ProvenanceRow {
  std::string link_class;
  std::string key;    ///< "bandwidth" or "latency".
  std::string value;  ///< As the links have it: "25 GB/s".
  Origin origin = Origin::assumed;
  std::string source;  ///< The file and what in it, or the preset, or why it was assumed.
  friend auto operator<=>(const ProvenanceRow&, const ProvenanceRow&) = default;
};

}  // namespace espalier
