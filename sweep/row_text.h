#pragma once

// Tested by: tests/unit/sweep/row_text_test.cpp

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/cells.h"
#include "sweep/row.h"

namespace espalier::sweep {

/// What the first column of every row says.
inline constexpr std::string_view schema = "espalier/sweep/4";

/// Their columns (docs/sweeps.md).
const RowForm& row_form();

/// What stands in them.
Cells cells_of(const Row& row, bool timings);

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

/// Puts rows that are read behind `rows`, which has to outlive it.
TakeCells take_into(std::vector<Row>& rows);

/// Reads what `row_text` wrote, as `read_cells` does. Errors: those of `read_cells`. Cost: linear in the text.
Result<RowsRead> read_rows(std::string_view text, RowFormat format, std::string_view name);

}  // namespace espalier::sweep
