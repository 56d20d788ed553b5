#pragma once

// Tested by: tests/unit/compare/fit/sampled_fit_test.cpp

#include <cstddef>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "compare/fit/least_squares.h"
#include "compare/fit/tangents.h"

namespace espalier::compare {

/// The times of some runs at these costs, in the order of `which`. Deterministic.
using TimesAt =
    std::function<Result<std::vector<double>>(std::span<const double> costs, std::span<const std::size_t> which)>;

/// What is fitted to sampled times.
struct SampledProblem {
  std::span<const std::size_t> runs;  ///< Whose times are fitted.
  std::function<std::vector<double>(std::span<const double> point)> costs;
  /// Of the times of `runs`, in their order.
  std::function<std::vector<double>(std::span<const double> point, std::span<const double> times)> residuals;
  std::vector<std::size_t> moving;  ///< The costs that depend on the point; always above 0.
};

/// Least squares over times that take long to simulate: the fit is made on tangents to the times simulated so far,
/// then the times at its point are simulated, and of runs that are not as their tangents say the tangents there are
/// added and it is made again. What was simulated serves all later fits, of other problems over the same costs too.
class SampledTimes {
 public:
  /// `step`: of a cost's logarithm, for the tangents.
  SampledTimes(std::size_t runs, TimesAt times, double step) : times_(std::move(times)), step_(step), tangents_(runs) {}

  /// Adds tangents of runs at these costs. Errors: those of the simulation.
  Result<void> sample(const std::vector<double>& costs, std::span<const std::size_t> moving,
                      std::span<const std::size_t> runs);

  /// Whether the time of any of these runs was seen to change with this cost.
  [[nodiscard]] bool depend_on(std::span<const std::size_t> runs, std::size_t cost) const;

  /// As fit_least_squares on the times themselves, its Jacobian that of the tangents. Converged: no time at its point
  /// differs from the tangents by more than a thousandth or a thirtieth of the residuals' scale, or two rounds in a row
  /// have gained less than a hundredth. A point that cannot be simulated is not taken. Errors: those of the simulation
  /// at the start, or beside a point that was reached.
  Result<Fit> fit(const SampledProblem& problem, const std::vector<double>& start, const FitOptions& options);

 private:
  Result<void> add_tangents(const std::vector<double>& costs, std::span<const double> times,
                            std::span<const std::size_t> moving, std::span<const std::size_t> runs);
  [[nodiscard]] std::vector<double> estimates(const SampledProblem& problem, std::span<const double> point) const;
  Result<std::vector<double>> times_towards(const SampledProblem& problem, const std::vector<double>& from,
                                            std::vector<double>& point) const;
  Result<bool> hold_against(const SampledProblem& problem, std::span<const double> point, std::span<const double> times,
                            double tolerance);

  TimesAt times_;
  double step_;
  Tangents tangents_;
};

}  // namespace espalier::compare
