#pragma once

// Tested by: tests/unit/sweep/row_file_test.cpp

#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/cell_file.h"
#include "sweep/row_text.h"

namespace espalier::sweep {

/// Errors: invalid_input when a file is there, has content, and does not begin as a file of rows does, of collectives
/// or of scenarios, so that it is not ours to replace.
Result<void> check_replaceable(const std::string& path);

/// A CellFile of rows of collectives.
class RowFile {
 public:
  /// Errors: those of CellFile::open.
  [[nodiscard]] static Result<RowFile> open(const std::string& path, const RowStyle& style, bool resume);

  /// The rows that were there when it was opened.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Whether a torn line was removed.
  [[nodiscard]] bool was_torn() const { return file_.was_torn(); }

  /// Errors: unavailable when the file does not take it.
  Result<void> append(const Row& row);

 private:
  RowFile(CellFile file, bool timings, std::vector<Row> rows)
      : file_(std::move(file)), timings_(timings), rows_(std::move(rows)) {}

  CellFile file_;
  bool timings_ = false;
  std::vector<Row> rows_;
};

}  // namespace espalier::sweep
