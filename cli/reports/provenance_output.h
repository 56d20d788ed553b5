#pragma once

// Tested by: tests/options/options_test.py

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier::cli {

/// Columns of the table below, and its rows.
inline constexpr std::array<const char*, 6> provenance_columns = {"class", "key", "value", "links", "origin", "source"};
std::vector<std::vector<std::string>> provenance_rows(const Topology& topology, std::span<const ProvenanceRow> rows);

Table provenance_table(const Topology& topology, std::span<const ProvenanceRow> rows);

/// A row per class and value of the links: how many have it, and where it came from by the rows of the file. Values of
/// which the file says nothing, such as edited ones, are "not stated".
std::string provenance_text(const Topology& topology, std::span<const ProvenanceRow> rows);
nlohmann::ordered_json provenance_json(const Topology& topology, std::span<const ProvenanceRow> rows);

}  // namespace espalier::cli
