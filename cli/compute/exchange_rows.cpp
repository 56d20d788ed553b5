#include "cli/compute/exchange_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <sstream>

#include "base/suggest.h"

namespace espalier::cli {
namespace {

constexpr std::array<std::string_view, 10> exchange_columns = {"software", "ranks", "tokens",    "hidden",   "top_k",
                                                               "experts",  "sms",   "max_boxes", "dispatch", "combine"};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::string field;
  for (const char letter : line) {
    if (letter == '\r') continue;
    if (letter == ',') {
      fields.push_back(std::move(field));
      field.clear();
    } else if (letter != ' ' && letter != '\t') {
      field += letter;
    }
  }
  fields.push_back(std::move(field));
  return fields;
}

template <class T>
Result<void> take(T& place, Result<T> value) {
  if (!value) return tl::unexpected(value.error());
  place = *value;
  return {};
}

Result<void> set_field(ExchangeRow& row, std::string_view column, const std::string& field) {
  experts::Exchange& exchange = row.exchange;
  if (column == "software") return take(exchange.software, experts::parse_software(field));
  if (column == "dispatch") return take(exchange.dispatch, experts::parse_format(field));
  if (column == "combine") return take(exchange.combine, experts::parse_format(field));
  std::int64_t number = 0;
  const char* const end = field.data() + field.size();
  const auto [read, problem] = std::from_chars(field.data(), end, number);
  if (problem != std::errc() || read != end || number < 0) {
    return fail(ErrorCode::invalid_input, fmt::format("{} is '{}'", column, field.substr(0, 60)), "a whole number");
  }
  if (column == "ranks") row.ranks = static_cast<std::size_t>(number);
  if (column == "tokens") exchange.tokens = number;
  if (column == "hidden") exchange.hidden = number;
  if (column == "top_k") exchange.top_k = number;
  if (column == "experts") exchange.experts = number;
  if (column == "sms") exchange.sms = number;
  if (column == "max_boxes") exchange.max_boxes = number;
  return {};
}

Result<void> check_columns(const std::vector<std::string>& columns) {
  std::set<std::string> seen;
  for (const std::string& column : columns) {
    if (std::ranges::find(exchange_columns, column) == exchange_columns.end()) {
      return fail(ErrorCode::invalid_input, fmt::format("there is no column '{}'", column.substr(0, 60)),
                  suggest(column, exchange_columns));
    }
    if (!seen.insert(column).second) {
      return fail(ErrorCode::invalid_input, fmt::format("column {} is there twice", column), {});
    }
  }
  return {};
}

}  // namespace

Result<std::vector<ExchangeRow>> read_exchange_rows(const std::string& text, const std::string& name,
                                                    const ExchangeRow& usual) {
  std::vector<ExchangeRow> rows;
  std::vector<std::string> columns;
  std::istringstream lines(text);
  std::size_t number = 0;
  const auto refuse = [&](const Error& error) {
    return fail(error.code, fmt::format("{}:{}: {}", name, number, error.message), error.help);
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() == 1 && fields.front().empty()) continue;
    if (columns.empty()) {
      if (const auto checked = check_columns(fields); !checked) return refuse(checked.error());
      columns = fields;
      continue;
    }
    if (fields.size() != columns.size()) {
      return refuse(
          {ErrorCode::invalid_input, fmt::format("{} fields under {} columns", fields.size(), columns.size()), {}});
    }
    ExchangeRow row = usual;
    row.where = fmt::format("{}:{}: ", name, number);
    for (std::size_t place = 0; place < columns.size(); ++place) {
      if (const auto set = set_field(row, columns[place], fields[place]); !set) return refuse(set.error());
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) {
    return fail(ErrorCode::invalid_input, fmt::format("{} has no rows", name),
                "a line of column names, then a row each");
  }
  return rows;
}

}  // namespace espalier::cli
