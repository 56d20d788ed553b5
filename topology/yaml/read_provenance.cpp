#include <fmt/format.h>

#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_keys.h"
#include "topology/yaml/reading.h"

namespace espalier {
namespace {

std::optional<ProvenanceRow> read_provenance_row(Reading& reading, Value entry) {
  const Fields fields(entry, "a row of provenance", read_keys::provenance, reading.environments.front(),
                      reading.findings);
  if (!fields.is_map()) return std::nullopt;
  for (const std::string_view key : read_keys::provenance) {
    if (!fields.has(key)) {
      fields.missing(key, "rows are {class, key, value, origin, source}");
      return std::nullopt;
    }
  }
  ProvenanceRow row{fields.text("class").value_or(""), fields.text("key").value_or(""),
                    fields.text("value").value_or(""), Origin::assumed, fields.text("source").value_or("")};
  const auto origin = fields.text("origin");
  if (!origin) return std::nullopt;
  const auto known = find_origin(*origin);
  if (!known) {
    fields.error(fields.mark_of("origin"),
                 {read_codes::bad_provenance, fmt::format("'{}' is no origin of a value", origin->substr(0, 60)),
                  "origins are measured, captured, preset and assumed"});
    return std::nullopt;
  }
  row.origin = *known;
  return row;
}

}  // namespace

std::vector<ProvenanceRow> read_provenance(Reading& reading, const SourceFiles::File& file) {
  std::vector<ProvenanceRow> rows;
  const Value root = file.document->root();
  const Value list = root.is_map() ? root.find("provenance") : Value();
  if (!list) return rows;
  if (!list.is_list()) {
    reading.findings.error(
        list.mark(), {read_codes::wrong_type, fmt::format("'provenance' must be a list, not {}", describe(list.kind())),
                      "begin each row with '- '"});
    return rows;
  }
  for (std::size_t i = 0; i < list.size() && reading.step(list.mark()); ++i) {
    if (auto row = read_provenance_row(reading, list.item(i))) rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace espalier
