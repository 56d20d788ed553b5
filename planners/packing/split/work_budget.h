#pragma once

#include <cstdint>

namespace espalier::planners {

/// What one packing may cost: some ten seconds.
inline constexpr std::int64_t most_arcs_passed = std::int64_t{1} << 31U;

/// How much more a planner may compute, counted in arcs that maximum flows pass over: unlike time, the same on every
/// machine and every day.
class WorkBudget {
 public:
  explicit WorkBudget(std::int64_t arcs) : left_(arcs) {}

  void spend(std::int64_t arcs) { left_ -= arcs; }
  [[nodiscard]] bool is_spent() const { return left_ < 0; }
  [[nodiscard]] std::int64_t left() const { return left_; }

 private:
  std::int64_t left_;
};

}  // namespace espalier::planners
