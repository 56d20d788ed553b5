#pragma once

#include <string>
#include <vector>

namespace espalier::cli {

/// A text table with aligned columns: numbers to the right, words to the left, two blanks between columns.
class Table {
 public:
  enum class Align { left, right };

  /// Adds a column; `unit` is shown in a second header line when any column has one.
  void add_column(std::string title, std::string unit = {}, Align align = Align::right);
  /// Adds a row; missing cells are empty. Requires: not more cells than columns.
  void add_row(std::vector<std::string> cells);

  /// Header lines begin with `comment` ("# " in nccl-tests' manner), rows with as many blanks.
  [[nodiscard]] std::string text(const std::string& comment = "# ") const;

 private:
  struct Column {
    std::string title;
    std::string unit;
    Align align = Align::right;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace espalier::cli
