#pragma once

#include <span>
#include <string>
#include <string_view>

#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier {

/// The plain form as YAML: `read_topology_text` gives back an equal topology, with the same node, link and rank ids.
/// Two neighbouring links that are each other's reverse become one `between`. `profile`: its key, unless empty.
std::string write_topology(const Topology& topology, std::span<const ProvenanceRow> provenance = {},
                           std::string_view profile = {});

/// The same document as one JSON object without line breaks, for embedding in another.
std::string write_topology_json(const Topology& topology, std::span<const ProvenanceRow> provenance = {},
                                std::string_view profile = {});

}  // namespace espalier
