#include <fmt/format.h>

#include "base/counted.h"
#include "compare/read/json_values.h"
#include "compare/read/nccl_tests.h"

namespace espalier::compare {
namespace {

constexpr double microsecond = 1e-6;

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name), json_(text), lines_(text) {}

  Result<Measurements> read(const NcclTestsHints& hints) {
    measurements_.file = name_;
    measurements_.origin = "nccl-tests";
    if (!read_document() || !json_.at_end()) {
      const JsonCursor::Failure& failure = json_.failure();
      const TextPosition position = position_of(text_, failure.offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", name_, position.line, position.column, failure.message), failure.help);
    }
    if (measurements_.rows.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:1:1: the document has no results", name_));
    }
    if (const std::size_t empty = results_ - measurements_.rows.size(); empty > 0) {
      measurements_.warnings.push_back(
          fmt::format("{}: {} of 0 bytes {} left out", name_, counted(empty, "row"), empty == 1 ? "is" : "are"));
    }
    for (Measurement& row : measurements_.rows) {
      row.ranks = ranks_;
      row.collective = !collective_.empty()        ? collective_
                       : !hints.collective.empty() ? hints.collective
                                                   : collective_of_file_name(name_);
    }
    return std::move(measurements_);
  }

 private:
  bool read_document() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view ignored;
    while (json_.next_key(key)) {
      const bool read = key == "args"            ? read_arguments()
                        : key == "config"        ? read_config()
                        : key == "results"       ? read_results()
                        : key == "out_of_bounds" ? read_out_of_bounds()
                                                 : json_.read_raw(ignored);
      if (!read) return false;
    }
    return !json_.failed();
  }

  bool read_arguments() {
    if (!json_.begin_array()) return false;
    std::string_view word;
    while (json_.next_element()) {
      if (!json_.read_string(word)) return false;
      if (auto found = collective_of_program(word)) collective_ = *found;
    }
    return !json_.failed();
  }

  bool read_config() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view ignored;
    while (json_.next_key(key)) {
      if (key != "devices") {
        if (!json_.read_raw(ignored)) return false;
        continue;
      }
      ranks_ = 0;
      if (!json_.begin_array()) return false;
      while (json_.next_element()) {
        if (!json_.read_raw(ignored)) return false;
        ++ranks_;
      }
    }
    return !json_.failed();
  }

  bool read_out_of_bounds() {
    const std::size_t begin = json_.next_offset();
    std::string_view raw;
    if (!json_.read_raw(raw)) return false;
    if (raw.find("\"false\"") != std::string_view::npos) {
      measurements_.warnings.push_back(
          fmt::format("{}:{}: values out of bounds", name_, position_of(text_, begin).line));
    }
    return true;
  }

  bool read_results() {
    return read_array(json_, [this] { return read_row(); });
  }

  bool read_row() {
    const std::size_t begin = json_.next_offset();
    Measurement row;
    bool has_size = false;
    std::optional<double> out_of_place, in_place;
    std::string_view key;
    std::string_view value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "size") {
        read = has_size = read_byte_count(json_, row.size);
      } else if (key == "type") {
        read = json_.read_string(value);
        row.type = value;
      } else if (key == "root") {
        read = json_.read_raw(value);
        if (const auto root = number_in(value); root && *root >= 0) row.root = fmt::format("{:.0f}", *root);
      } else if (key == "out_of_place") {
        read = read_group(out_of_place, row.wrong);
      } else if (key == "in_place") {
        read = read_group(in_place, row.wrong);
      } else {
        read = json_.read_raw(value);
      }
      if (!read) return false;
    }
    if (json_.failed()) return false;
    if (!has_size || (!out_of_place && !in_place)) {
      return json_.fail(begin, "a result needs a size and the time of out_of_place or in_place");
    }
    row.seconds = out_of_place.value_or(in_place.value_or(0));
    row.in_place_seconds = in_place;
    row.line = lines_.line_of(begin);
    ++results_;
    if (row.size.count > 0) measurements_.rows.push_back(std::move(row));
    return true;
  }

  bool read_group(std::optional<double>& seconds, std::optional<std::int64_t>& wrong) {
    if (json_.take_null()) return true;
    if (!json_.begin_object()) return false;
    std::string_view key;
    std::string_view value;
    while (json_.next_key(key)) {
      double time = 0;
      if (key == "time") {
        if (!read_duration(json_, microsecond, time)) return false;
        seconds = time;
        continue;
      }
      if (!json_.read_raw(value)) return false;
      constexpr double most = 1e18;
      const auto count = number_in(value);
      if (key == "nwrong" && count && *count >= 0 && *count < most) {
        wrong = wrong.value_or(0) + static_cast<std::int64_t>(*count);
      }
    }
    return !json_.failed();
  }

  std::string_view text_;
  std::string name_;
  JsonCursor json_;
  LineCounter lines_;
  Measurements measurements_;
  std::string collective_;
  std::uint32_t ranks_ = 0;
  std::size_t results_ = 0;  ///< With those that are left out.
};

}  // namespace

Result<Measurements> read_nccl_tests_json(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  return JsonReader(text, name).read(hints);
}

}  // namespace espalier::compare
