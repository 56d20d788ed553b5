#pragma once

// Tested by: tests/unit/compare/fit/calibrate_test.cpp

#include <cstddef>
#include <span>
#include <vector>

#include "compare/fit/calibrate.h"

namespace espalier::compare {

/// How the coordinates of a fit set the parameters: coordinate x multiplies the start values of its parameters by
/// exp(x). At first each parameter has a coordinate of its own; settling a flat direction takes one away.
class FitVariables {
 public:
  explicit FitVariables(std::vector<Parameter> parameters);

  [[nodiscard]] std::span<const Parameter> parameters() const { return parameters_; }
  /// All coordinates at 0.
  [[nodiscard]] std::vector<double> start() const { return std::vector<double>(members_.size(), 0.0); }
  /// The parameters' values at a point; of held ones the given value, of vanished ones 0.
  [[nodiscard]] std::vector<double> values(std::span<const double> point) const;
  /// The parameters that a coordinate sets; those of all coordinates, in ascending order.
  [[nodiscard]] std::span<const std::size_t> members(std::size_t coordinate) const { return members_[coordinate]; }
  [[nodiscard]] std::vector<std::size_t> moving() const;
  /// The outcome, with the coordinates' standard errors.
  [[nodiscard]] std::vector<FittedParameter> fitted(std::span<const double> point,
                                                    std::span<const double> standard_errors) const;

  /// Gives the parameters that the topology leaves out coordinates too; how many there are.
  std::size_t add_absent(std::vector<double>& point);

  /// Takes a coordinate of a flat direction out of the fit, or joins those of one kind; `point` loses the same
  /// coordinates. Requires: at least one coordinate.
  Ambiguity settle(const FlatDirection& direction, std::vector<double>& point);

  /// Holds the parameters of coordinates, in ascending order, that change nothing.
  Ambiguity hold_unused(const std::vector<std::size_t>& coordinates, std::vector<double>& point);

 private:
  using Members = std::vector<std::size_t>;

  [[nodiscard]] ParameterKind kind_of(std::size_t coordinate) const {
    return parameters_[members_[coordinate].front()].kind;
  }
  [[nodiscard]] bool has_vanished(std::size_t coordinate, double at) const;
  void drop(std::size_t coordinate, std::vector<double>& point);
  [[nodiscard]] bool is_absent(std::size_t coordinate) const {
    return parameters_[members_[coordinate].front()].given <= 0;
  }
  std::string join(const std::vector<std::size_t>& coordinates, std::vector<double>& point);
  std::string hold(std::size_t coordinate, bool vanishes, std::vector<double>& point);

  std::vector<Parameter> parameters_;
  std::vector<ParameterState> states_;
  std::vector<Members> members_;  ///< By coordinate: its parameters.
};

}  // namespace espalier::compare
