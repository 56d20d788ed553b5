#pragma once

// Tested by: tests/unit/sweep/row_file_test.cpp

#include <string>

#include "base/result.h"
#include "sweep/cells.h"

namespace espalier::sweep {

/// A file that rows are appended to as they come, each with one write: whenever the process ends, the file has whole
/// rows and at most one torn line at its end, which the next `open` removes; it removes nothing else. Locked against a
/// second writer.
class CellFile {
 public:
  /// Opens a file, new or, with `resume`, one that has rows already, which `take` gets.
  /// Errors: invalid_input when it has rows and `resume` is not set, is written in another style, or is no file of
  /// such rows; unavailable when it cannot be written or another process writes it.
  [[nodiscard]] static Result<CellFile> open(const std::string& path, const RowForm& form, const RowStyle& style,
                                             bool resume, const TakeCells& take);

  CellFile(CellFile&& other) noexcept;
  CellFile& operator=(CellFile&& other) noexcept;
  CellFile(const CellFile&) = delete;
  CellFile& operator=(const CellFile&) = delete;
  ~CellFile();

  /// Whether a torn line was removed.
  [[nodiscard]] bool was_torn() const { return was_torn_; }

  /// Errors: unavailable when the file does not take it.
  Result<void> append(const Cells& cells) const;

 private:
  CellFile(std::string path, RowForm form, RowStyle style, int descriptor)
      : path_(std::move(path)), form_(form), style_(style), descriptor_(descriptor) {}
  Result<void> take_what_is_there(bool resume, const TakeCells& take);
  Result<void> write(const std::string& text) const;

  std::string path_;
  RowForm form_;
  RowStyle style_;
  int descriptor_ = -1;
  bool was_torn_ = false;
};

}  // namespace espalier::sweep
