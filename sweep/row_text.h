#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/row.h"

namespace espalier::sweep {

/// What the first column of every row says.
inline constexpr std::string_view schema = "espalier/sweep/2";

enum class RowFormat : std::uint8_t { csv, json_lines };

/// How rows are written: as what, and with the columns of the wall clock or not.
struct RowStyle {
  RowFormat format = RowFormat::csv;
  bool timings = false;
  friend bool operator==(const RowStyle&, const RowStyle&) = default;
};

/// By a path's ending: .csv, .jsonl or .ndjson. Errors: invalid_input for any other.
Result<RowFormat> format_of(std::string_view path);

/// The line with the columns' names; empty for JSON lines, whose rows carry them.
std::string header_text(const RowStyle& style);

/// One row with the line break behind it.
std::string row_text(const Row& row, const RowStyle& style);

/// The header and all rows. Errors: unavailable when the stream does not take it all.
Result<void> write_rows(std::ostream& out, std::span<const Row> rows, const RowStyle& style);

/// All rows as one JSON document.
std::string document_text(std::span<const Row> rows, bool timings);

/// What was read of a file of rows.
struct RowsRead {
  std::vector<Row> rows;
  bool timings = false;
  std::size_t whole_bytes = 0;  ///< Where the last whole line ends; what comes behind is a row that a kill cut short.
};

/// Whether a file's text begins as a file of rows does: with a whole header, or with a row of JSON lines.
bool begins_as_rows(std::string_view text);

/// Reads what `row_text` wrote, exactly; `name` stands for the file in messages. Only a last line that begins as a row
/// and has no line break at all counts as torn: what follows a quote that nothing closes is not torn but an error.
/// Errors: invalid_input with file:line when a whole line is not a row, or the rest is not a row cut short.
/// Cost: linear in the text.
Result<RowsRead> read_rows(std::string_view text, RowFormat format, std::string_view name);

}  // namespace espalier::sweep
