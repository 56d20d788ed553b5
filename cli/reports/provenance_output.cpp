#include "cli/reports/provenance_output.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/format_units.h"
#include "cli/output/table.h"

namespace espalier::cli {
namespace {

struct StatedValue {
  std::string link_class;
  std::string key;
  std::string value;
  std::size_t links = 0;
  std::string origin = "not stated";
  std::string source;
};

/// In the order of the links; a value of several origins has a row for each.
std::vector<StatedValue> state_values(const Topology& topology, std::span<const ProvenanceRow> rows) {
  std::vector<StatedValue> values;
  std::map<std::array<std::string, 3>, std::size_t> places;
  const auto count = [&](const Link& link, const char* key, const std::string& value) {
    const auto [place, is_new] = places.emplace(std::array{link.link_class, std::string(key), value}, values.size());
    if (is_new) values.push_back({link.link_class, key, value});
    ++values[place->second].links;
  };
  for (const Link& link : topology.links()) {
    count(link, "bandwidth", format_bandwidth(link.nominal));
    count(link, "latency", format_latency(link.latency));
  }
  std::vector<StatedValue> stated;
  for (const StatedValue& value : values) {
    bool is_stated = false;
    for (const ProvenanceRow& row : rows) {
      if (row.link_class != value.link_class || row.key != value.key || row.value != value.value) continue;
      stated.push_back(value);
      stated.back().origin = to_string(row.origin);
      stated.back().source = row.source;
      is_stated = true;
    }
    if (!is_stated) stated.push_back(value);
  }
  return stated;
}

}  // namespace

std::vector<std::vector<std::string>> provenance_rows(const Topology& topology, std::span<const ProvenanceRow> rows) {
  std::vector<std::vector<std::string>> cells;
  for (const StatedValue& value : state_values(topology, rows)) {
    cells.push_back(
        {value.link_class, value.key, value.value, std::to_string(value.links), value.origin, value.source});
  }
  return cells;
}

Table provenance_table(const Topology& topology, std::span<const ProvenanceRow> rows) {
  Table table;
  for (const std::string title : provenance_columns) {
    table.add_column(title, {}, title == "links" ? Table::Align::right : Table::Align::left);
  }
  for (std::vector<std::string>& cells : provenance_rows(topology, rows)) table.add_row(std::move(cells));
  return table;
}

std::string provenance_text(const Topology& topology, std::span<const ProvenanceRow> rows) {
  return fmt::format("# {}  {} values of links\n", topology.name(),
                     rows.empty() ? "no provenance is stated for" : "provenance of") +
         provenance_table(topology, rows).text();
}

nlohmann::ordered_json provenance_json(const Topology& topology, std::span<const ProvenanceRow> rows) {
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const StatedValue& value : state_values(topology, rows)) {
    values.push_back({{"class", value.link_class},
                      {"key", value.key},
                      {"value", value.value},
                      {"links", value.links},
                      {"origin", value.origin},
                      {"source", value.source}});
  }
  return {{"schema", "espalier/provenance/1"}, {"topology", topology.name()}, {"values", values}};
}

}  // namespace espalier::cli
