#pragma once

// Tested by: tests/unit/base/disjoint_sets_test.cpp

#include <algorithm>
#include <boost/pending/disjoint_sets.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

namespace espalier {

/// The numbers below a count, joined into sets; a set is known by its smallest member, whatever the order of the joins.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count)
      : rank_(count), parent_(count), smallest_(count), sets_(rank_.data(), parent_.data()) {
    std::iota(parent_.begin(), parent_.end(), 0U);
    std::iota(smallest_.begin(), smallest_.end(), 0U);
  }
  DisjointSets(const DisjointSets&) = delete;
  DisjointSets& operator=(const DisjointSets&) = delete;
  DisjointSets(DisjointSets&&) = default;
  DisjointSets& operator=(DisjointSets&&) = default;
  ~DisjointSets() = default;

  /// The smallest number that is in one set with `member`.
  std::uint32_t find(std::uint32_t member) { return smallest_[sets_.find_set(member)]; }
  void join(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = sets_.find_set(a), second = sets_.find_set(b);
    if (first == second) return;
    const std::uint32_t smallest = std::min(smallest_[first], smallest_[second]);
    sets_.link(first, second);
    smallest_[parent_[first]] = smallest;  // One of the two has become the other's parent, and stayed its own.
  }

 private:
  std::vector<std::uint8_t> rank_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::uint32_t> smallest_;  ///< By the member that stands for its set in the library.
  boost::disjoint_sets<std::uint8_t*, std::uint32_t*> sets_;
};

}  // namespace espalier
