#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/printable.h"
#include "schedule/collective.h"
#include "schedule/json/json_cursor.h"
#include "schedule/traffic/traffic_readers.h"

namespace espalier {
namespace {

constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

void split_at(std::string_view line, std::string_view separators, bool takes_runs, std::size_t line_offset,
              std::vector<TrafficField>& fields) {
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find_first_of(separators, begin), line.size());
    const std::string_view field = trimmed(line.substr(begin, end - begin));
    if (!field.empty() || !takes_runs) {
      const std::size_t at = field.empty() ? begin : static_cast<std::size_t>(field.data() - line.data());
      fields.push_back({field, line_offset + at});
    }
    begin = end + 1;
  }
}

}  // namespace

std::string why_bad_traffic(double value) {
  if (!std::isfinite(value)) return "it is not finite";
  if (value < 0) return "it is below zero";
  if (value > static_cast<double>(max_matrix_sum)) return "it is more than 2^52";
  return {};
}

TrafficNumber read_traffic_number(std::string_view text) {
  constexpr std::size_t max_shown = 40;
  TrafficNumber number;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (text.empty()) {
    number.wrong = "a number is missing";
  } else if (status == std::errc::result_out_of_range) {
    number.wrong = fmt::format("{}: it is out of range", printable_line(text.substr(0, max_shown)));
  } else if (status != std::errc() || rest != text.data() + text.size()) {
    number.wrong = fmt::format("'{}' is not a number", printable_line(text.substr(0, max_shown)));
  } else if (const std::string wrong = why_bad_traffic(number.value); !wrong.empty()) {
    number.wrong = fmt::format("{}: {}", printable_line(text.substr(0, max_shown)), wrong);
  }
  return number;
}

tl::unexpected<Error> fail_traffic(std::string_view name, std::string_view text, std::size_t offset,
                                   const std::string& message, std::string help) {
  const TextPosition position = position_of(text, std::min(offset, text.size()));
  return fail(ErrorCode::invalid_input, fmt::format("{}:{}:{}: {}", name, position.line, position.column, message),
              std::move(help));
}

std::optional<std::vector<TrafficField>> next_traffic_line(std::string_view text, std::size_t& offset) {
  while (offset < text.size()) {
    const std::size_t begin = offset;
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    offset = end + 1;
    std::string_view line = text.substr(begin, end - begin);
    line = line.substr(0, line.find('#'));
    if (trimmed(line).empty()) continue;
    while (!line.empty() && blanks.find(line.back()) != std::string_view::npos) line.remove_suffix(1);
    std::vector<TrafficField> fields;
    for (const std::string_view separator : {",", ";", "\t"}) {
      if (line.find(separator) == std::string_view::npos) continue;
      split_at(line, separator, false, begin, fields);
      // A comma at the end is how some programs write rows.
      if (fields.size() > 1 && fields.back().text.empty()) fields.pop_back();
      return fields;
    }
    split_at(line, blanks, true, begin, fields);
    return fields;
  }
  return std::nullopt;
}

Result<TrafficMatrix> finish_traffic(std::size_t ranks, const std::vector<double>& values, std::string_view name) {
  double sum = 0;
  bool are_whole = true;
  for (const double value : values) {
    sum += value;
    are_whole = are_whole && value == std::floor(value);
  }
  if (sum == 0) {
    return fail(ErrorCode::invalid_input, fmt::format("{}: all blocks are zero", name),
                "some rank has to send something");
  }
  if (are_whole && sum > static_cast<double>(max_matrix_sum)) {
    return fail(ErrorCode::too_large, fmt::format("{}: the blocks sum to more than 2^52 bytes", name),
                "give larger units, or weights with a fraction");
  }
  constexpr double weight_sum = 1099511627776.0;  // 2^40
  TrafficMatrix matrix{ranks, {}, are_whole};
  matrix.blocks.reserve(values.size());
  for (const double value : values) {
    std::int64_t block = static_cast<std::int64_t>(value);
    if (!are_whole) block = value > 0 ? std::max<std::int64_t>(1, std::llround(value / sum * weight_sum)) : 0;
    matrix.blocks.push_back(block);
  }
  return matrix;
}

Result<TrafficMatrix> parse_traffic_csv(std::string_view text, std::string_view name) {
  std::vector<double> values;
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::size_t offset = 0;
  std::size_t last_row = 0;
  while (const auto fields = next_traffic_line(text, offset)) {
    last_row = fields->front().offset;
    if (rows == 0) columns = fields->size();
    if (columns > max_matrix_ranks) {
      return fail(ErrorCode::too_large,
                  fmt::format("{}: a matrix of {} ranks is past the limit of {}", name, columns, max_matrix_ranks));
    }
    if (fields->size() != columns || rows == columns) {
      const std::string message =
          fields->size() != columns
              ? fmt::format("row {} has {} numbers, and the first has {}", rows, fields->size(), columns)
              : fmt::format("there are more rows than the {} columns", columns);
      return fail_traffic(name, text, last_row, message, "row i has what rank i sends to each rank");
    }
    for (const TrafficField& field : *fields) {
      const TrafficNumber number = read_traffic_number(field.text);
      if (!number.wrong.empty()) {
        return fail_traffic(name, text, field.offset, number.wrong, "a block is a number of bytes, or a weight");
      }
      values.push_back(number.value);
    }
    ++rows;
  }
  if (rows == 0) {
    return fail_traffic(name, text, 0, "there is no matrix", "write a row per rank: what it sends to each rank");
  }
  if (rows != columns) {
    return fail_traffic(name, text, last_row, fmt::format("there are {} rows of {} numbers", rows, columns),
                        "a matrix has as many rows as columns");
  }
  return finish_traffic(rows, values, name);
}

}  // namespace espalier
