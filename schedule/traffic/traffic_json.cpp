#include <fmt/format.h>

#include "schedule/collective.h"
#include "schedule/json/json_cursor.h"
#include "schedule/traffic/traffic_readers.h"

namespace espalier {
namespace {

/// Reads a list of lists of numbers.
class MatrixReader {
 public:
  explicit MatrixReader(JsonCursor& json) : json_(json) {}

  bool read() {
    const std::size_t begin = json_.next_offset();
    if (!json_.begin_array()) return false;
    std::size_t columns = 0;
    for (; json_.next_element(); ++rows_) {
      const std::size_t row = json_.next_offset();
      const std::size_t before = values_.size();
      if (!read_row()) return false;
      if (rows_ == 0) columns = values_.size();
      if (values_.size() - before != columns || columns == 0) {
        return json_.fail(
            row, fmt::format("row {} has {} numbers, and the first has {}", rows_, values_.size() - before, columns),
            "row i has what rank i sends to each rank");
      }
      if (rows_ == columns) {
        return json_.fail(row, fmt::format("there are more rows than the {} columns", columns),
                          "a matrix has as many rows as columns");
      }
    }
    if (json_.failed()) return false;
    if (rows_ == columns && rows_ > 0) return true;
    return json_.fail(
        begin, rows_ == 0 ? "there is no matrix" : fmt::format("there are {} rows of {} numbers", rows_, columns),
        "a matrix has as many rows as columns");
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  bool read_row() {
    const std::size_t before = values_.size();
    if (!json_.begin_array()) return false;
    while (json_.next_element()) {
      const std::size_t at = json_.next_offset();
      if (!json_.read_number(values_.emplace_back())) return false;
      if (const std::string wrong = why_bad_traffic(values_.back()); !wrong.empty()) {
        return json_.fail(at, fmt::format("{}: {}", values_.back(), wrong),
                          "a block is a number of bytes, or a weight");
      }
      if (values_.size() - before > max_matrix_ranks) {
        return json_.fail(at, fmt::format("a row has more than {} numbers", max_matrix_ranks));
      }
    }
    return !json_.failed();
  }

  JsonCursor& json_;
  std::size_t rows_ = 0;
  std::vector<double> values_;
};

bool read_document(JsonCursor& json, std::string_view text, MatrixReader& reader) {
  if (text[json.next_offset()] == '[') return reader.read() && json.at_end();
  if (!json.begin_object()) return false;
  std::string_view key;
  while (json.next_key(key)) {
    if (key != "matrix") {
      return json.fail(json.key_offset(), fmt::format("there is no key '{}' here", key),
                       "the one key is \"matrix\", a list of numbers for each rank");
    }
    if (reader.rows() > 0) return json.fail(json.key_offset(), "the key 'matrix' is given twice");
    if (!reader.read()) return false;
  }
  if (!json.failed() && reader.rows() == 0) json.fail(0, "the key \"matrix\" is missing");
  return !json.failed() && json.at_end();
}

}  // namespace

Result<TrafficMatrix> parse_traffic_json(std::string_view text, std::string_view name) {
  JsonCursor json(text);
  MatrixReader reader(json);
  if (!read_document(json, text, reader)) {
    return fail_traffic(name, text, json.failure().offset, json.failure().message, json.failure().help);
  }
  return finish_traffic(reader.rows(), reader.values(), name);
}

}  // namespace espalier
