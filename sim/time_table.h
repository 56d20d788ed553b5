#pragma once

// Tested by: tests/unit/sim/time_table_test.cpp

#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace espalier::sim {

/// Times over message sizes, for those who ask often, such as compilers: known at some sizes and straight between them.
/// Immutable.
///
/// Invariants: sizes rise; times never fall, as a larger message can be sent wherever a smaller one is.
class TimeTable {
 public:
  struct Point {
    Bytes size;
    Picoseconds time;
  };
  /// The points' sizes rise, from above zero. A time below that of a smaller size becomes that one.
  /// Errors: invalid_input: no points, or sizes that do not rise.
  static Result<TimeTable> make(std::vector<Point> points);

  /// The time at a size: below the first point its time, above the last one along the last two. Cost: logarithmic in
  /// the points.
  [[nodiscard]] Picoseconds at(Bytes size) const;

 private:
  explicit TimeTable(std::vector<Point> points) : points_(std::move(points)) {}
  std::vector<Point> points_;
};

}  // namespace espalier::sim
