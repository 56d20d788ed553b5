#pragma once

// Tested by: tests/unit/sweep/row_text_test.cpp

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Rows as text, whatever they are of: what stands in their cells and in which columns is a RowForm's.
namespace espalier::sweep {

enum class RowFormat : std::uint8_t { csv, json_lines };

/// How rows are written: as what, and with the columns of the wall clock or not.
struct RowStyle {
  RowFormat format = RowFormat::csv;
  bool timings = false;
  friend bool operator==(const RowStyle&, const RowStyle&) = default;
};

enum class CellKind : std::uint8_t { text, number };

struct Column {
  std::string_view name;
  CellKind kind = CellKind::text;
};

/// A kind of rows.
struct RowForm {
  std::string_view schema;          ///< What the first column of every row says.
  std::span<const Column> columns;  ///< The first is the schema.
  std::size_t timing_columns = 0;   ///< So many at the end are there with RowStyle::timings only.

  [[nodiscard]] std::size_t column_count(bool timings) const { return columns.size() - (timings ? 0 : timing_columns); }
};

/// A row: a text for each of its columns, empty where it has no value; numbers as they are written.
using Cells = std::vector<std::string>;

/// By a path's ending: .csv, .jsonl or .ndjson. Errors: invalid_input for any other.
Result<RowFormat> format_of(std::string_view path);

/// The line with the columns' names; empty for JSON lines, whose rows carry them.
std::string header_text(const RowForm& form, const RowStyle& style);

/// One row with the line break behind it.
std::string line_text(const RowForm& form, const Cells& cells, RowFormat format);

/// The header and all rows. Errors: unavailable when the stream does not take it all.
Result<void> write_cells(std::ostream& out, const RowForm& form, std::span<const Cells> rows, const RowStyle& style);

/// All rows as one JSON document.
std::string document_text(const RowForm& form, std::span<const Cells> rows);

/// Whether a file's text begins as a file of such rows does: with a whole header, or with a row of JSON lines.
bool begins_as(const RowForm& form, std::string_view text);

/// Takes a whole row, with the columns of the wall clock or without; says what is wrong with it, or nothing.
using TakeCells = std::function<std::string(const Cells& cells, bool timings)>;

/// What was read of a file of rows.
struct CellsRead {
  std::size_t rows = 0;
  bool timings = false;
  std::size_t whole_bytes = 0;  ///< Where the last whole line ends; what comes behind is a row that a kill cut short.
};

/// Reads what `line_text` wrote, exactly, row by row; `name` stands for the file in messages. Only a last line that
/// begins as a row and has no line break at all counts as torn: what follows a quote that nothing closes is not torn
/// but an error. Errors: invalid_input with file:line when a whole line is not a row, or the rest is not a row cut
/// short. Cost: linear in the text.
Result<CellsRead> read_cells(std::string_view text, const RowForm& form, RowFormat format, std::string_view name,
                             const TakeCells& take);

}  // namespace espalier::sweep
