#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace espalier {

/// A JSON string. Requires: UTF-8.
inline std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

/// Collects text and hands it to the stream a megabyte at a time.
class BufferedOutput {
 public:
  explicit BufferedOutput(std::ostream& out) : out_(out) {}

  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(buffer_), format, std::forward<Values>(values)...);
    if (buffer_.size() >= flush_size) flush();
  }
  void append(std::string_view text) {
    buffer_.append(text.data(), text.data() + text.size());
    if (buffer_.size() >= flush_size) flush();
  }
  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

 private:
  static constexpr std::size_t flush_size = std::size_t{1} << 20U;
  std::ostream& out_;
  fmt::memory_buffer buffer_;
};

}  // namespace espalier
