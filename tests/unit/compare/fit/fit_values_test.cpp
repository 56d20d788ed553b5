#include "compare/fit/fit_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace espalier::compare {
namespace {

const std::vector<double> sizes = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8};

/// Run i takes values[0] + sizes[i] / values[1]; values[2] is of no run.
PredictFrom affine() {
  return [](std::span<const double> values, std::span<const std::size_t> which) -> Result<std::vector<double>> {
    std::vector<double> times;
    for (const std::size_t i : which) times.push_back(values[0] + sizes[i] / values[1]);
    return times;
  };
}

std::vector<double> times_of(const std::vector<double>& values) {
  std::vector<std::size_t> all(sizes.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return *affine()(values, all);
}

TEST(FitValues, FindsWhatRunsTell) {
  const std::vector<double> given = {10e-6, 100e9, 7}, true_values = {14e-6, 130e9, 7};
  const std::vector<double> measured = times_of(true_values), importance(sizes.size(), 1.0);
  FitValuesOptions options;
  options.price = 1e-3;
  const auto fit = fit_values(given, measured, importance, affine(), {}, options);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->values[0].value / true_values[0], 1, 0.01);
  EXPECT_NEAR(fit->values[1].value / true_values[1], 1, 0.01);
  EXPECT_EQ(fit->values[2].state, ParameterState::held);
  EXPECT_EQ(fit->values[2].value, 7);
  EXPECT_GT(fit->values[0].standard_error, 0);
}

TEST(FitValues, LeavesGivenValuesOnlyForAPrice) {
  const std::vector<double> given = {10e-6, 100e9, 7}, true_values = {20e-6, 100e9, 7};
  const std::vector<double> measured = times_of(true_values), importance(sizes.size(), 1.0);
  FitValuesOptions dear;
  dear.price = 100;
  const auto held = fit_values(given, measured, importance, affine(), {}, dear);
  ASSERT_TRUE(held);
  EXPECT_NEAR(held->values[0].value / given[0], 1, 0.05);
}

TEST(FitValues, RatesHaveAPriceOfTheirOwn) {
  const std::vector<double> given = {10e-6, 100e9, 7}, true_values = {10e-6, 200e9, 7};
  const std::vector<double> measured = times_of(true_values), importance(sizes.size(), 1.0);
  FitValuesOptions options;
  options.rates = {1};
  options.rate_price = 100;
  const auto held = fit_values(given, measured, importance, affine(), {}, options);
  ASSERT_TRUE(held);
  EXPECT_NEAR(held->values[1].value / given[1], 1, 0.05);
  options.rate_price = 1e-3;
  const auto moved = fit_values(given, measured, importance, affine(), {}, options);
  ASSERT_TRUE(moved);
  EXPECT_NEAR(moved->values[1].value / true_values[1], 1, 0.05);
}

TEST(FitValues, AnOutlierDoesNotPull) {
  const std::vector<double> given = {10e-6, 100e9, 7};
  std::vector<double> measured = times_of(given);
  measured[1] *= 5;
  const std::vector<double> importance(sizes.size(), 1.0);
  const auto fit = fit_values(given, measured, importance, affine(), {});
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->weights[1], 0.5);
  EXPECT_NEAR(fit->values[0].value / given[0], 1, 0.2);
}

TEST(FitValues, PartsAreForetoldByTheOthers) {
  const std::vector<double> given = {10e-6, 100e9, 7}, true_values = {14e-6, 130e9, 7};
  std::vector<double> measured = times_of(true_values);
  measured[5] *= 2;  // what the others do not say
  const std::vector<double> importance(sizes.size(), 1.0);
  const std::vector<HoldOutPart> parts = {{"last", {5}}, {"first", {0, 1}}};
  FitValuesOptions options;
  options.price = 1e-3;
  const auto fit = fit_values(given, measured, importance, affine(), parts, options);
  ASSERT_TRUE(fit);
  ASSERT_EQ(fit->held_out.size(), 2U);
  EXPECT_NEAR(fit->held_out[0][0] / times_of(true_values)[5], 1, 0.05);
  EXPECT_EQ(fit->held_out[1].size(), 2U);
}

}  // namespace
}  // namespace espalier::compare
