#include "cli/output/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace espalier::cli {

std::string csv_field(const std::string& cell) {
  if (cell.find_first_of("\",\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

void Table::add_column(std::string title, std::string unit, Align align, std::string of) {
  columns_.push_back({std::move(title), std::move(unit), align, std::move(of)});
}

void Table::add_row(std::vector<std::string> cells) {
  ESPALIER_CHECK(cells.size() <= columns_.size(), "a row has more cells than the table has columns");
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(const std::string& comment) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = std::max(columns_[i].title.size(), columns_[i].unit.size());
    for (const auto& row : rows_) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](const std::string& start, auto cell_of) {
    std::string line = start;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cell_of(i);
      const std::string padding(widths[i] - cell.size(), ' ');
      line += (i > 0 ? "  " : "") + (columns_[i].align == Align::right ? padding + cell : cell + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add_line(comment, [&](std::size_t i) { return columns_[i].title; });
  if (std::ranges::any_of(columns_, [](const Column& column) { return !column.unit.empty(); })) {
    add_line(comment, [&](std::size_t i) { return columns_[i].unit; });
  }
  for (const auto& row : rows_) add_line(std::string(comment.size(), ' '), [&](std::size_t i) { return row[i]; });
  return text;
}

std::string Table::csv() const {
  std::string text;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const std::string title = column.of.empty() ? column.title : column.of + " " + column.title;
    text += (i > 0 ? "," : "") + csv_field(column.unit.empty() ? title : title + " " + column.unit);
  }
  text += "\r\n";
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i > 0 ? "," : "") + csv_field(row[i]);
    text += "\r\n";
  }
  return text;
}

}  // namespace espalier::cli
