#pragma once

#include <string>
#include <vector>

namespace espalier::cli {

/// A text table with aligned columns: numbers to the right, words to the left, two blanks between columns.
class Table {
 public:
  enum class Align { left, right };

  /// Adds a column; `unit` is shown in a second header line when any column has one.
  /// `of`: what it is a column of, which CSV puts before a title that several columns have.
  void add_column(std::string title, std::string unit = {}, Align align = Align::right, std::string of = {});
  /// Adds a row; missing cells are empty. Requires: not more cells than columns.
  void add_row(std::vector<std::string> cells);

  /// Header lines begin with `comment` ("# " in nccl-tests' manner), rows with as many blanks.
  [[nodiscard]] std::string text(const std::string& comment = "# ") const;

  /// The same cells as CSV; the first record has the titles with their units: "busbw (GB/s)". Source: RFC 4180.
  [[nodiscard]] std::string csv() const;

 private:
  struct Column {
    std::string title;
    std::string unit;
    Align align = Align::right;
    std::string of;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace espalier::cli
