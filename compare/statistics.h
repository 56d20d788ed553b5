#pragma once

// Tested by: tests/unit/compare/compare_results_test.cpp

#include <vector>

namespace espalier::compare {

/// How far `value` is from `reference`, as a part of it: (value - reference) / reference. 0 when both are 0, infinite
/// when only the reference is.
double relative_error(double value, double reference);

/// The smallest value that at least the part `share` of all values do not exceed (0.5: the lower median); 0 of none.
/// Requires: 0 < share <= 1.
double quantile(std::vector<double> values, double share);

/// The middle value, or the mean of the two in the middle; 0 of none.
double median(std::vector<double> values);

/// What is left of errors when their sign is dropped.
struct ErrorSummary {
  std::size_t count = 0;
  double median = 0;
  double p90 = 0;
  double worst = 0;
  double bias = 0;  ///< The median with signs: above 0 when the first file mostly says more.
};
ErrorSummary summarize_errors(const std::vector<double>& errors);

}  // namespace espalier::compare
