#pragma once

// Tested by: tests/unit/cli/output/table_test.cpp

#include <string>
#include <vector>

namespace espalier::cli {

/// A field of a CSV file, in quotes where it needs them. Source: RFC 4180.
std::string csv_field(const std::string& cell);

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

  /// Calls `use_title(title with unit, whether numbers)` for each column, then `use_row(cells)` for each row.
  template <class UseTitle, class UseRow>
  void visit(UseTitle use_title, UseRow use_row) const {
    for (const Column& column : columns_) {
      use_title(column.unit.empty() ? column.title : column.title + " " + column.unit, column.align == Align::right);
    }
    for (std::vector<std::string> row : rows_) {
      row.resize(columns_.size());
      use_row(row);
    }
  }

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
