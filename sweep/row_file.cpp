#include "sweep/row_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "sweep/scenario_rows.h"

namespace espalier::sweep {

Result<void> check_replaceable(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return {};
  std::ifstream file(path, std::ios::binary);
  const RowStyle longest = {RowFormat::csv, true};
  std::string text(std::max(header_text(longest).size(), header_text(scenario_form(), longest).size()), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty() || begins_as_rows(text) || begins_as(scenario_form(), text)) return {};
  return espalier::fail(ErrorCode::invalid_input, path + ":1: the file is there already and is not one of rows",
                        "choose another file, or remove it (nothing was changed)");
}

Result<RowFile> RowFile::open(const std::string& path, const RowStyle& style, bool resume) {
  std::vector<Row> rows;
  auto file = CellFile::open(path, row_form(), style, resume, take_into(rows));
  if (!file) return tl::unexpected(file.error());
  return RowFile(*std::move(file), style.timings, std::move(rows));
}

Result<void> RowFile::append(const Row& row) { return file_.append(cells_of(row, timings_)); }

}  // namespace espalier::sweep
