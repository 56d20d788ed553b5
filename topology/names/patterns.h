#pragma once

// Tested by: tests/unit/topology/names/group_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "topology/yaml/findings.h"

namespace espalier {

/// A name with numbers left open: "gpu[0-7]", "t[0-3]-[0,2]", "box[*].nic3". Brackets hold numbers and ranges separated
/// by commas, or a star for every number that exists. Ranges may count down; a leading zero ("[00-15]") fixes the
/// width. Several brackets count like an odometer, the last one fastest.
class NamePattern {
 public:
  /// Errors: bad_range.
  static tl::expected<NamePattern, Problem> parse(std::string_view text);

  [[nodiscard]] bool has_star() const { return has_star_; }
  /// How many names it stands for. Requires: no star.
  [[nodiscard]] std::uint64_t size() const;
  /// All names in order. Requires: no star; size() was found small enough.
  [[nodiscard]] std::vector<std::string> names() const;

  /// The text with each run of digits and each bracket as one '#'; equal for every name that `matches`, as far as they
  /// agree outside digits.
  [[nodiscard]] std::string shape() const;
  [[nodiscard]] static std::string shape_of(std::string_view name);
  /// True for names that the pattern stands for, a star being any number.
  [[nodiscard]] bool matches(std::string_view name) const;

 private:
  struct Range {
    std::int64_t first = 0;
    std::int64_t last = 0;
    int width = 0;  ///< Least number of digits.

    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] std::string name(std::uint64_t i) const;
  };
  /// A bracket and the text before it.
  struct Part {
    std::string before;
    std::vector<Range> ranges;  ///< Empty: a star.

    [[nodiscard]] std::uint64_t size() const;
    [[nodiscard]] std::string name(std::uint64_t i) const;
    [[nodiscard]] bool contains(std::string_view digits) const;
  };

  static tl::expected<Part, Problem> parse_bracket(std::string_view whole, std::string_view inside);

  std::vector<Part> parts_;
  std::string tail_;
  bool has_star_ = false;
};

}  // namespace espalier
