// Any bytes are read as rows of a sweep, of collectives and of scenarios, in both formats, without harm; what is read
// is written and read again the same.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "sweep/row_text.h"
#include "sweep/scenario_rows.h"

namespace {

using namespace espalier;

void read_scenarios(std::string_view text, sweep::RowFormat format) {
  std::vector<sweep::Cells> rows, again;
  const auto read = sweep::read_cells(text, sweep::scenario_form(), format, "fuzz", sweep::take_scenarios_into(rows));
  if (!read) {
    ESPALIER_CHECK(read.error().message.starts_with("fuzz:"), "an error says where");
    return;
  }
  std::string written = sweep::header_text(sweep::scenario_form(), {format, false});
  for (const sweep::Cells& row : rows) written += sweep::line_text(sweep::scenario_form(), row, format);
  const bool is_read =
      sweep::read_cells(written, sweep::scenario_form(), format, "again", sweep::take_scenarios_into(again))
          .has_value();
  ESPALIER_CHECK(is_read && again == rows, "what was written is read again and says the same");
  const auto merged = sweep::merge_scenario_rows({{"a", rows}, {"b", rows}});
  ESPALIER_CHECK(!merged || merged->rows.size() <= rows.size(), "rows that agree are one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const sweep::RowFormat format : {sweep::RowFormat::csv, sweep::RowFormat::json_lines}) {
    read_scenarios(text, format);
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
