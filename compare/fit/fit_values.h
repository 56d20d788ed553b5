#pragma once

// Tested by: tests/unit/compare/fit/fit_values_test.cpp

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/fit/calibrate.h"

namespace espalier::compare {

/// The times, in seconds, that some of the runs would take with these values. Deterministic.
using PredictFrom =
    std::function<Result<std::vector<double>>(std::span<const double> values, std::span<const std::size_t> which)>;

/// Runs that are left out together, to see how well the others foretell them.
struct HoldOutPart {
  std::string name;  ///< "x2.txt", "dgx-a100".
  std::vector<std::size_t> runs;
};

struct FitValuesOptions {
  double min_noise = 0.02;  ///< Runs are not taken for repeatable beyond this.
  double max_error = 0.5;   ///< A value that the runs leave open by more than this part is held.
  double price = 0.1;       ///< What leaving a given value by a factor of e costs, as a residual.
  double rate_price = 0.5;  ///< The same of rates, which data sheets and other machines say better than costs.
  std::vector<std::size_t> rates = {};  ///< The values of which runs take the inverse: rates, and parts of them.
  FitOptions fit = {.max_steps = 12, .max_nudges = 0};
};

/// A value that was fitted, or held as given.
struct FittedValue {
  double given = 0;
  double value = 0;
  ParameterState state = ParameterState::fitted;
  double standard_error = 0;  ///< Relative; 0 unless fitted.
};

struct ValuesFit {
  std::vector<FittedValue> values;
  std::vector<double> before;   ///< Predicted seconds, run by run, with the given values.
  std::vector<double> after;    ///< With the fitted ones.
  std::vector<double> weights;  ///< Of the robust fit.
  /// By part, in the order of its runs: predicted seconds by a fit that began from the given values and did not know
  /// them.
  std::vector<std::vector<double>> held_out;
  bool converged = false;
};

/// Fits positive values to measured times by robust least squares over logarithms (fit_least_squares), with a price for
/// leaving the given values, which say more than nothing where runs say little. What no run depends on, and what the
/// runs alone leave open, is held as given. `importance`: by what a run's residual is multiplied.
/// Requires: values and measured times above 0. Errors: those of `predict`.
Result<ValuesFit> fit_values(std::span<const double> given, std::span<const double> measured,
                             std::span<const double> importance, const PredictFrom& predict,
                             std::span<const HoldOutPart> parts, const FitValuesOptions& options = {});

}  // namespace espalier::compare
