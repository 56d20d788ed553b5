#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A row per class and value of the links: how many have it, and where it came from by the rows of the file. Values of
/// which the file says nothing, such as edited ones, are "not stated".
std::string provenance_text(const Topology& topology, std::span<const ProvenanceRow> rows);
nlohmann::ordered_json provenance_json(const Topology& topology, std::span<const ProvenanceRow> rows);

}  // namespace espalier::cli
