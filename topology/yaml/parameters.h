#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "topology/yaml/findings.h"

namespace espalier {

/// The parameters that may be used at one place of a file: names with their texts, and those of the places around it.
class Environment {
 public:
  explicit Environment(const Environment* outer = nullptr) : outer_(outer) {}

  void set(std::string name, std::string text) { values_.emplace_back(std::move(name), std::move(text)); }
  [[nodiscard]] const std::string* find(std::string_view name) const;
  [[nodiscard]] bool has_own(std::string_view name) const;
  [[nodiscard]] std::vector<std::string_view> names() const;

 private:
  const Environment* outer_;
  std::vector<std::pair<std::string, std::string>> values_;
};

/// True for a letter or '_' followed by letters, digits and '_'.
bool is_parameter_name(std::string_view text);

/// Puts values in place of `$name`, `${expression}` (whole numbers, + - * / % and parentheses) and `$$` (a dollar
/// sign). Errors: unknown_parameter, bad_expression.
tl::expected<std::string, Problem> substitute(std::string_view text, const Environment& environment);

}  // namespace espalier
