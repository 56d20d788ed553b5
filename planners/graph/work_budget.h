#pragma once

// Tested by: tests/property/planners/large_networks_test.cpp

#include <cstdint>

namespace espalier::planners {

/// How much more a planner may compute, in steps of a search or arcs that maximum flows pass over: unlike time, the
/// same on every machine and every day.
class WorkBudget {
 public:
  explicit WorkBudget(std::int64_t steps = 0) : left_(steps) {}

  /// False when that was more than was left.
  bool spend(std::int64_t steps = 1) {
    left_ -= steps;
    return left_ >= 0;
  }
  [[nodiscard]] bool is_spent() const { return left_ < 0; }
  /// Below 0 when more was spent than there was.
  [[nodiscard]] std::int64_t left() const { return left_; }

 private:
  std::int64_t left_;
};

}  // namespace espalier::planners
