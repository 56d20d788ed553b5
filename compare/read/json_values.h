#pragma once

// Tested by: tests/unit/compare/stragglers_test.cpp

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "schedule/json/json_cursor.h"

namespace espalier::compare {

/// A JSON value that is a finite number, or a string that holds one; nothing for null, "N/A" and everything else.
inline std::optional<double> number_in(std::string_view raw) {
  if (raw.size() >= 2 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
  while (!raw.empty() && raw.front() == ' ') raw.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (status != std::errc() || end != raw.data() + raw.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// Reads the next value as a duration: a finite number from 0 on, times `unit` seconds.
inline bool read_duration(JsonCursor& json, double unit, double& seconds) {
  const std::size_t begin = json.next_offset();
  std::string_view raw;
  if (!json.read_raw(raw)) return false;
  const auto value = number_in(raw);
  constexpr double longest = 1e9;
  if (!value || *value < 0 || *value * unit > longest) return json.fail(begin, "this is not a time");
  seconds = *value * unit;
  return true;
}

/// Reads the next value as an array, each element by `read`, which is false when it could not.
template <class Read>
bool read_array(JsonCursor& json, const Read& read) {
  if (!json.begin_array()) return false;
  while (json.next_element()) {
    if (!read()) return false;
  }
  return !json.failed();
}

/// The line of bytes of a text, asked for in ascending order. Cost: linear in the text over all calls.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}
  std::size_t line_of(std::size_t offset) {
    for (; at_ < offset && at_ < text_.size(); ++at_) line_ += text_[at_] == '\n' ? 1U : 0U;
    return line_;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

/// Reads the next value as a size in bytes.
inline bool read_byte_count(JsonCursor& json, Bytes& size) {
  const std::size_t begin = json.next_offset();
  if (!json.read_integer(size.count)) return false;
  if (size.count < 0 || size > max_message_size) return json.fail(begin, "sizes are from 0 to 1 PiB");
  return true;
}

}  // namespace espalier::compare
