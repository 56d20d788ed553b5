#include "compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace espalier::compare {

double relative_error(double value, double reference) {
  if (reference == 0) return value == 0 ? 0.0 : std::copysign(std::numeric_limits<double>::infinity(), value);
  return (value - reference) / reference;
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto count = static_cast<double>(values.size());
  const auto index = static_cast<std::size_t>(std::max(std::ceil(share * count) - 1, 0.0));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::min(index, values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  // The mean of infinite ones would be infinite or no number.
  if (std::isinf(values[middle - 1]) || std::isinf(values[middle])) return values[middle - 1];
  return (values[middle - 1] + values[middle]) / 2;
}

ErrorSummary summarize_errors(const std::vector<double>& errors) {
  ErrorSummary summary;
  summary.count = errors.size();
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  summary.median = median(sizes);
  summary.p90 = quantile(sizes, 0.9);
  summary.worst = quantile(sizes, 1.0);
  summary.bias = median(errors);
  return summary;
}

}  // namespace espalier::compare
