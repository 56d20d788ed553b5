#pragma once

// Tested by: tests/unit/planners/place_table_test.cpp

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "base/id.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// A value for every slice at every rank or relay, T() at first. Where there are many of both, as in an all_to_all,
/// most slices never come to most ranks: then only the values that were asked for are kept. References stay valid.
template <class T>
class PlaceTable {
 public:
  PlaceTable(std::size_t ends, std::size_t slices) : slices_(slices), is_sparse_(is_sparse(ends, slices)) {
    if (!is_sparse_) dense_.resize(ends * slices);
  }

  /// Whether only values that were asked for are kept, which takes many times as long to look up.
  [[nodiscard]] static bool is_sparse(std::size_t ends, std::size_t slices) { return ends * slices > max_dense; }

  T& at(Rank end, std::size_t slice) {
    const std::size_t place = end.index() * slices_ + slice;
    return is_sparse_ ? sparse_[place] : dense_[place];
  }

 private:
  static constexpr std::size_t max_dense = std::size_t{1} << 26U;

  std::size_t slices_;
  bool is_sparse_;
  std::vector<T> dense_;
  std::unordered_map<std::size_t, T> sparse_;
};

}  // namespace espalier::planners
