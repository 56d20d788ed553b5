// Any bytes are read as rows of a sweep, in both formats, without harm; what is read is written and read again the
// same.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "sweep/row_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const sweep::RowFormat format : {sweep::RowFormat::csv, sweep::RowFormat::json_lines}) {
    const auto read = sweep::read_rows(text, format, "fuzz");
    if (!read) {
      ESPALIER_CHECK(read.error().message.starts_with("fuzz:"), "an error says where");
      continue;
    }
    ESPALIER_CHECK(read->whole_bytes <= size, "only what is there is read");
    const std::string_view torn = text.substr(read->whole_bytes);
    ESPALIER_CHECK(torn.find('\n') == std::string_view::npos, "no line break is torn off");
    ESPALIER_CHECK(torn.empty() || sweep::begins_as_rows(text), "and nothing of a file that is not of rows");
    const sweep::RowStyle style{format, read->timings};
    std::string written = sweep::header_text(style);
    for (const sweep::Row& row : read->rows) written += sweep::row_text(row, style);
    const auto again = sweep::read_rows(written, format, "again");
    ESPALIER_CHECK(again && again->rows.size() == read->rows.size(), "what was written is read again");
    for (std::size_t i = 0; i < read->rows.size(); ++i) {
      ESPALIER_CHECK(again->rows[i].agrees_with(read->rows[i]), "and says the same");
    }
  }
  return 0;
}
