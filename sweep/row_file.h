#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/row_text.h"

namespace espalier::sweep {

/// Errors: invalid_input when a file is there, has content, and does not begin as a file of rows does, so that it is
/// not ours to replace.
Result<void> check_replaceable(const std::string& path);

/// A file that rows are appended to as they come, each with one write: whenever the process ends, the file has whole
/// rows and at most one torn line at its end, which the next `open` removes; it removes nothing else. Locked against a
/// second writer.
class RowFile {
 public:
  /// Opens a file, new or, with `resume`, one that has rows already.
  /// Errors: invalid_input when it has rows and `resume` is not set, is written in another style, or is no file of
  /// rows; unavailable when it cannot be written or another process writes it.
  [[nodiscard]] static Result<RowFile> open(const std::string& path, const RowStyle& style, bool resume);

  RowFile(RowFile&& other) noexcept;
  RowFile& operator=(RowFile&& other) noexcept;
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;
  ~RowFile();

  /// The rows that were there when it was opened.
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Whether a torn line was removed.
  [[nodiscard]] bool was_torn() const { return was_torn_; }

  /// Errors: unavailable when the file does not take it.
  Result<void> append(const Row& row);

 private:
  RowFile(std::string path, RowStyle style, int descriptor)
      : path_(std::move(path)), style_(style), descriptor_(descriptor) {}
  Result<void> take_what_is_there(bool resume);
  Result<void> write(const std::string& text) const;

  std::string path_;
  RowStyle style_;
  int descriptor_ = -1;
  std::vector<Row> rows_;
  bool was_torn_ = false;
};

}  // namespace espalier::sweep
