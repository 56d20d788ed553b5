#include "diagnose/likelihood.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

namespace espalier::diagnose {
namespace {

/// The density of one row: a mixture of Gaussians, as likelihood.cpp names their parts.
double density_of_one(double residual) {
  double sum = 0;
  for (const double noise : {0.01, 0.02, 0.05, 0.15}) {
    for (const auto& [error, weight] : {std::pair(0.002, 0.25), {0.04, 0.25}, {0.1, 0.3}, {0.2, 0.2}}) {
      const double variance = noise * noise + error * error;
      sum += weight / 4 * std::exp(-residual * residual / (2 * variance)) / std::sqrt(2 * std::numbers::pi * variance);
    }
  }
  return std::log(sum);
}

TEST(Likelihood, OfOneRowIsTheMixtureOfItsGaussians) {
  const std::vector<Likelihood::Row> rows = {{{1 << 20}, 0}};
  const Likelihood likelihood(rows);
  for (const double residual : {0.0, 0.01, -0.05, 0.4, -1.5}) {
    EXPECT_NEAR(likelihood.log_of(std::array{residual}), density_of_one(residual), 1e-9) << residual;
  }
}

TEST(Likelihood, SmoothErrorsAreLikelierThanRoughOnesOfTheSameSize) {
  std::vector<Likelihood::Row> rows;
  std::vector<double> smooth, rough;
  for (int i = 0; i < 12; ++i) {
    rows.push_back({{std::int64_t{1} << (10 + i)}, 0});
    smooth.push_back(0.1);
    rough.push_back(i % 2 == 0 ? 0.1 : -0.1);
  }
  const Likelihood likelihood(rows);
  EXPECT_GT(likelihood.log_of(smooth), likelihood.log_of(rough) + 5);
}

TEST(Likelihood, OrderOfRowsDoesNotCount) {
  const std::vector<Likelihood::Row> rows = {{{1024}, 0}, {{4096}, 0}, {{1024}, 1}};
  const std::vector<Likelihood::Row> turned = {rows[2], rows[0], rows[1]};
  EXPECT_NEAR(Likelihood(rows).log_of(std::array{0.3, 0.1, -0.2}),
              Likelihood(turned).log_of(std::array{-0.2, 0.3, 0.1}), 1e-9);
}

TEST(LogMean, IsThatOfTheValues) {
  EXPECT_NEAR(log_mean(std::array{std::log(2.0), std::log(4.0)}), std::log(3.0), 1e-12);
  EXPECT_NEAR(log_mean(std::array{std::log(2.0), std::log(4.0)}, std::array{3.0, 1.0}), std::log(2.5), 1e-12);
  EXPECT_NEAR(log_mean(std::array{-2000.0, -2000.0}), -2000, 1e-9);
}

}  // namespace
}  // namespace espalier::diagnose
