#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <span>
#include <string>
#include <string_view>

#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier {

/// The plain form as YAML: `read_topology_text` gives back an equal topology, with the same node, link and rank ids.
/// Two neighbouring links that are each other's reverse become one `between`. `profile` and `gpu`: these keys, unless
/// empty.
std::string write_topology(const Topology& topology, std::span<const ProvenanceRow> provenance = {},
                           std::string_view profile = {}, std::string_view gpu = {});

/// The same topology with boxes that are alike as one group ("box", count 8192): what a machine of many boxes is read
/// from in a fraction of the time. The plain form where there are no such boxes (yaml/like_boxes.h).
std::string write_topology_compact(const Topology& topology, std::string_view profile = {}, std::string_view gpu = {});

/// The same document as one JSON object without line breaks, for embedding in another.
std::string write_topology_json(const Topology& topology, std::span<const ProvenanceRow> provenance = {},
                                std::string_view profile = {}, std::string_view gpu = {});

}  // namespace espalier
