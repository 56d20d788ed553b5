#include "compare/fit/least_squares.h"

#include <gtest/gtest.h>

#include <cmath>

namespace espalier::compare {
namespace {

/// y = p0 + p1 x against points of the line 2 + 3 x.
Residuals line(std::vector<double> noise = {}) {
  return [noise = std::move(noise)](std::span<const double> point) -> Result<std::vector<double>> {
    std::vector<double> residuals;
    for (int x = 0; x < 10; ++x) {
      const double measured = 2 + 3 * x + (noise.empty() ? 0 : noise[static_cast<std::size_t>(x)]);
      residuals.push_back(point[0] + point[1] * x - measured);
    }
    return residuals;
  };
}

TEST(LeastSquares, FindsALine) {
  const auto fit = fit_least_squares(line(), {0, 0});
  ASSERT_TRUE(fit.has_value());
  EXPECT_TRUE(fit->converged);
  EXPECT_NEAR(fit->point[0], 2, 1e-3);
  EXPECT_NEAR(fit->point[1], 3, 1e-3);
}

TEST(LeastSquares, AnOutlierHardlyCounts) {
  std::vector<double> noise(10, 0.0);
  noise[4] = 100;
  const auto fit = fit_least_squares(line(noise), {0, 0});
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->point[0], 2, 0.05);
  EXPECT_NEAR(fit->point[1], 3, 0.05);
  EXPECT_LT(fit->weights[4], 0.01);
}

/// |p0 - p1| is steep across a valley that the Jacobian of one side does not see the far side of.
TEST(LeastSquares, KinksDoNotStopIt) {
  const auto fit = fit_least_squares(
      [](std::span<const double> point) -> Result<std::vector<double>> {
        return std::vector<double>{10 * std::max(point[0], point[1]) - 10, std::min(point[0], point[1]) - 0.5,
                                   3 * std::abs(point[0] - 2 * point[1])};
      },
      {-1, -1});
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->point[0], 1, 0.02);
  EXPECT_NEAR(fit->point[1], 0.5, 0.02);
}

TEST(LeastSquares, NoCoordinatesAreEvaluatedOnce) {
  int calls = 0;
  const auto fit = fit_least_squares(
      [&](std::span<const double>) -> Result<std::vector<double>> {
        ++calls;
        return std::vector<double>{1, 2};
      },
      {});
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(fit->residuals, (std::vector<double>{1, 2}));
}

TEST(LeastSquares, ErrorsOfTheModelComeThrough) {
  const auto fit = fit_least_squares(
      [](std::span<const double>) -> Result<std::vector<double>> { return fail(ErrorCode::too_large, "no"); }, {0});
  ASSERT_FALSE(fit.has_value());
  EXPECT_EQ(fit.error().message, "no");
}

/// Only the sum of two coordinates matters: (1, -1) / sqrt(2) is flat.
TEST(Identify, FindsWhatCannotBeToldApart) {
  const auto fit = fit_least_squares(
      [](std::span<const double> point) -> Result<std::vector<double>> {
        std::vector<double> residuals;
        for (int x = 1; x < 8; ++x) residuals.push_back((point[0] + point[1]) * x + point[2] * x * x - 5.0 * x);
        return residuals;
      },
      {0, 0, 1});
  ASSERT_TRUE(fit.has_value());
  const Identification known = identify(*fit, 0.01, 0.3);
  ASSERT_EQ(known.flat.size(), 1U);
  const std::vector<double>& flat = known.flat[0].components;
  EXPECT_NEAR(std::abs(flat[0]), std::sqrt(0.5), 1e-3);
  EXPECT_NEAR(flat[0], -flat[1], 1e-3);
  EXPECT_NEAR(flat[2], 0, 1e-3);
  EXPECT_LT(known.standard_error[2], 0.01);
}

/// Ten points of weight 1: the standard error of a mean is noise / sqrt(10).
TEST(Identify, StandardErrorsAreThoseOfAMean) {
  const auto fit = fit_least_squares(
      [](std::span<const double> point) -> Result<std::vector<double>> { return std::vector<double>(10, point[0]); },
      {1});
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(identify(*fit, 0.1, 0.3).standard_error[0], 0.1 / std::sqrt(10.0), 1e-6);
}

}  // namespace
}  // namespace espalier::compare
