#pragma once

// Tested by: tests/unit/compare/fit/sampled_fit_test.cpp

#include <cstddef>
#include <span>
#include <vector>

namespace espalier::compare {

/// Times of runs as functions of costs, such as latencies and seconds per byte, known from points at which they were
/// simulated. A run takes as long as its longest path, and a path the sum of what it passes: so a time is close to the
/// largest of its tangents at known points, and exact at these.
class Tangents {
 public:
  explicit Tangents(std::size_t runs) : of_runs_(runs) {}

  /// Requires: as many costs and slopes each time.
  void add(std::size_t run, std::vector<double> costs, double time, std::vector<double> slopes);

  /// Leaves out the tangents of a run that claim more than its time at these costs: order of service makes times not
  /// quite convex.
  void correct(std::size_t run, std::span<const double> costs, double time);

  [[nodiscard]] bool is_known(std::size_t run) const { return !of_runs_[run].empty(); }

  /// Requires: is_known.
  [[nodiscard]] double estimate(std::size_t run, std::span<const double> costs) const;

  /// Whether the run's time changes with this cost at any known point.
  [[nodiscard]] bool depends_on(std::size_t run, std::size_t cost) const;

 private:
  struct Tangent {
    std::vector<double> costs;
    double time = 0;
    std::vector<double> slopes;
    bool claims_too_much = false;

    [[nodiscard]] double at(std::span<const double> others) const;
  };

  std::vector<std::vector<Tangent>> of_runs_;
};

}  // namespace espalier::compare
