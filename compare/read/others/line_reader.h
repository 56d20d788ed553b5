#pragma once

// Tested by: tests/unit/compare/read/others_test.cpp

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "compare/read/nccl_tests_line.h"

namespace espalier::compare {

/// The lines of a text one after the other, numbered from 1, without what launchers and terminals put around them.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  /// True when there is another line; it is then read.
  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = nccl_tests::clean_line(rest_.substr(0, end)).text;
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    return true;
  }
  [[nodiscard]] const std::string& line() const { return line_; }
  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] std::vector<std::string_view> words() const { return nccl_tests::split_words(line_); }
  [[nodiscard]] bool has(std::string_view part) const { return line_.find(part) != std::string::npos; }

 private:
  std::string_view rest_;
  std::string line_;
  std::size_t number_ = 0;
};

}  // namespace espalier::compare
