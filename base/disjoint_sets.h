#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace espalier {

/// The numbers below a count, joined into sets; a set is known by its smallest member.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0U); }

  /// The smallest number that is in one set with `member`.
  std::uint32_t find(std::uint32_t member) {
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = find(a), second = find(b);
    parent_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<std::uint32_t> parent_;  ///< Never above the member itself.
};

}  // namespace espalier
