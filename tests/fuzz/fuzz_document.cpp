// Any bytes are read as a document of --json without harm; what is read becomes tables whose rows are as wide as they
// should be.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "report/document_tables.h"
#include "report/html_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const auto document = report::read_document({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!document) {
    ESPALIER_CHECK(document.error().message.starts_with("fuzz:"), "an error says where");
    return 0;
  }
  for (const report::ReportTable& table : report::tables_of(*document, "fuzz")) {
    for (const auto& row : table.rows) ESPALIER_CHECK(row.size() == table.columns.size(), "rows are as wide as titles");
    ESPALIER_CHECK(table.rows.size() <= report::max_document_rows || table.name == "values", "tables are cut off");
    report::html_table(table);
  }
  return 0;
}
