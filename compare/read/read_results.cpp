#include <fmt/format.h>

#include <limits>

#include "compare/read/json_values.h"
#include "compare/read/read_run.h"

namespace espalier::compare {
namespace {

class ResultsReader {
 public:
  ResultsReader(std::string_view text, std::string_view name) : text_(text), name_(name), json_(text), lines_(text) {}

  Result<Measurements> read() {
    measurements_.file = name_;
    if (!read_document() || !json_.at_end()) {
      const JsonCursor::Failure& failure = json_.failure();
      const TextPosition position = position_of(text_, failure.offset);
      return fail(is_other_version_ ? ErrorCode::unsupported : ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", name_, position.line, position.column, failure.message), failure.help);
    }
    for (Measurement& row : measurements_.rows) {
      row.collective = collective_;
      row.ranks = ranks_;
      row.root = root_;
    }
    if (measurements_.origin.empty()) measurements_.origin = has_model_ ? "simulation" : "run";
    return std::move(measurements_);
  }

 private:
  bool read_document() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view raw;
    bool has_schema = false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "schema") {
        read = has_schema = read_schema();
      } else if (key == "topology") {
        read = read_text(measurements_.topology);
      } else if (key == "origin") {
        read = read_text(measurements_.origin);
      } else if (key == "collective") {
        read = read_text(collective_);
      } else if (key == "root") {
        read = json_.take_null() || read_text(root_);
      } else if (key == "ranks") {
        read = read_ranks();
      } else if (key == "shares") {
        read = read_shares();
      } else if (key == "matrix") {
        read = read_array(json_, [this] { return read_shares(); });
      } else if (key == "results") {
        read = read_rows();
      } else {
        has_model_ = has_model_ || key == "model";
        read = json_.read_raw(raw);
      }
      if (!read) return false;
    }
    if (json_.failed()) return false;
    if (!has_schema) return json_.fail(0, "the document does not say \"schema\": \"espalier/results/1\"");
    return !measurements_.rows.empty() || json_.fail(0, "the document has no results");
  }

  bool read_schema() {
    const std::size_t begin = json_.next_offset();
    std::string schema;
    if (!read_text(schema)) return false;
    if (schema == "espalier/results/1") return true;
    is_other_version_ = schema.starts_with("espalier/results/");
    return json_.fail(begin, fmt::format("schema '{}' is not espalier/results/1", schema));
  }

  bool read_text(std::string& value) {
    std::string_view view;
    if (!json_.read_string(view)) return false;
    value = view;
    return true;
  }

  bool read_ranks() {
    const std::size_t begin = json_.next_offset();
    std::int64_t count = 0;
    if (!json_.read_integer(count)) return false;
    if (count < 1 || count > std::numeric_limits<std::uint32_t>::max()) return json_.fail(begin, "ranks count from 1");
    ranks_ = static_cast<std::uint32_t>(count);
    return true;
  }

  bool read_shares() {
    return read_array(json_, [this] { return json_.read_integer(measurements_.shares.emplace_back()); });
  }

  bool read_rows() {
    return read_array(json_, [this] { return read_row(); });
  }

  bool read_row() {
    const std::size_t begin = json_.next_offset();
    Measurement row;
    bool has_size = false;
    bool has_time = false;
    std::string_view key;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "size") {
        read = has_size = read_byte_count(json_, row.size);
      } else if (key == "time") {
        read = has_time = read_duration(json_, 1, row.seconds);
      } else {
        read = read_detail(key, row);
      }
      if (!read) return false;
    }
    if (json_.failed()) return false;
    if (!has_size || !has_time) return json_.fail(begin, "a result needs a size and a time");
    row.line = lines_.line_of(begin);
    measurements_.rows.push_back(std::move(row));
    return true;
  }

  bool read_detail(std::string_view key, Measurement& row) {
    if (key == "type") return read_text(row.type);
    if (key == "algorithm") return read_text(row.algorithm);
    if (key == "planner") return read_text(row.planner);
    if (key == "plan") return read_text_or_other(row.plan);
    if (key == "chunk") return json_.take_null() || read_byte_count(json_, row.chunk);
    if (key == "min") return read_optional_time(row.min_seconds);
    if (key == "p99") return read_optional_time(row.p99_seconds);
    if (key == "in_place") return read_in_place(row.in_place_seconds);
    if (key == "wrong") return json_.take_null() || json_.read_integer(row.wrong.emplace());
    std::string_view raw;
    return json_.read_raw(raw);
  }

  /// Takes a string; any other value says nothing here.
  bool read_text_or_other(std::string& value) {
    const std::size_t begin = json_.next_offset();
    if (begin < text_.size() && text_[begin] == '"') return read_text(value);
    std::string_view raw;
    return json_.read_raw(raw);
  }

  bool read_optional_time(std::optional<double>& seconds) {
    return json_.take_null() || read_duration(json_, 1, seconds.emplace());
  }

  bool read_in_place(std::optional<double>& seconds) {
    if (json_.take_null()) return true;
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view raw;
    while (json_.next_key(key)) {
      if (!(key == "time" ? read_optional_time(seconds) : json_.read_raw(raw))) return false;
    }
    return !json_.failed();
  }

  std::string_view text_;
  std::string name_;
  JsonCursor json_;
  LineCounter lines_;
  Measurements measurements_;
  std::string collective_;
  std::string root_;
  std::uint32_t ranks_ = 0;
  bool has_model_ = false;
  bool is_other_version_ = false;
};

}  // namespace

Result<Measurements> read_results(std::string_view text, std::string_view name) {
  return ResultsReader(text, name).read();
}

}  // namespace espalier::compare
