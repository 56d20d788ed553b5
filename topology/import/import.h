#pragma once

// Tested by: tests/unit/topology/import/import_test.cpp

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier {

/// A file of another tool.
struct ImportFile {
  std::string name;  ///< For messages and provenance.
  std::string_view text;
};

struct ImportOptions {
  std::string as;               ///< Format of all files; empty: each is recognised.
  std::string preset;           ///< Gives rates that no file has; empty: none.
  std::int64_t boxes = 1;       ///< Copies of the machine, joined by their NICs.
  std::string nics;             ///< NICs of the machine that are the fabric's, as a list of names; empty: all.
  bool in_network = false;      ///< Switches that can copy and add do.
  std::string name = "import";  ///< Of the topology.
};

struct ImportedTopology {
  Topology topology;
  std::vector<ProvenanceRow> provenance;
  std::vector<Diagnostic> warnings;
  std::string profile;             ///< The shipped profile of its GPUs; empty where none is or they are not known.
  std::string gpu;                 ///< The model of all its GPUs (compute/gpu.h); empty where they are not known.
  std::vector<std::string> notes;  ///< What else is known of the machine and is not counted.
};

/// A topology from what other tools wrote about a machine: each file in one of `import_formats` (docs/formats.md),
/// several about one machine merged, values of the better origin first. Machines and a file of the fabric become a
/// cluster. Errors: invalid_input with file:line:column; infeasible when the files describe no machine; too_large.
Result<ImportedTopology> import_topology(std::span<const ImportFile> files, const ImportOptions& options);

struct ImportFormat {
  std::string_view name;  ///< For --as.
  std::string_view what;  ///< "NCCL topology XML (NCCL_TOPO_DUMP_FILE)".
};
std::vector<ImportFormat> import_formats();
std::vector<std::string_view> preset_names();

}  // namespace espalier
