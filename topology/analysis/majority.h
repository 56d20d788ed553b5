#pragma once

// Tested by: tests/unit/topology/analysis/symmetry_test.cpp

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace espalier {

/// The value that clearly most of a group share, and which members (by position) have another one.
template <class Value>
struct Majority {
  Value value;
  std::size_t agreeing = 0;
  std::vector<std::size_t> deviants;
};

/// Nothing when fewer than three quarters (or fewer than three) agree, or when more than `max_deviants` differ.
/// No deviants when all agree.
template <class Value>
std::optional<Majority<Value>> find_majority(const std::vector<Value>& values, std::size_t max_deviants) {
  std::map<Value, std::size_t> counts;
  for (const Value& value : values) ++counts[value];
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == counts.end() || most->second < 3 || 4 * most->second < 3 * values.size()) return {};
  Majority<Value> majority{most->first, most->second, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != majority.value) majority.deviants.push_back(i);
  }
  if (majority.deviants.size() > max_deviants) return {};
  return majority;
}

}  // namespace espalier
