#include "diagnose/likelihood.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace espalier::diagnose {
namespace {

/// Of each time its own: quiet machines measure medians to a per cent, busy ones to some.
constexpr std::array noises = {0.01, 0.02, 0.05, 0.15};

/// What the model lacks. A simulation of the same model has next to none of it; a profile's median factors on machines
/// that it was fitted to are 1.03 to 1.07, on others up to 1.2 (docs/accuracy.md).
struct ModelError {
  double size;
  double weight;
};
constexpr std::array errors = {ModelError{0.002, 0.25}, ModelError{0.04, 0.25}, ModelError{0.1, 0.3},
                               ModelError{0.2, 0.2}};

constexpr double octaves = 4;      ///< Over so many the model's error changes.
constexpr double of_others = 0.5;  ///< So much of it is the same for another series.

}  // namespace

double log_mean(std::span<const double> logarithms, std::span<const double> weights) {
  const double largest = *std::ranges::max_element(logarithms);
  if (!std::isfinite(largest)) return -std::numeric_limits<double>::infinity();
  double sum = 0, all = 0;
  for (std::size_t i = 0; i < logarithms.size(); ++i) {
    const double weight = weights.empty() ? 1 : weights[i];
    sum += weight * std::exp(logarithms[i] - largest);
    all += weight;
  }
  return largest + std::log(sum / all);
}

struct Likelihood::Factors {
  struct One {
    Eigen::LLT<Eigen::MatrixXd> factor;
    double constant = 0;  ///< Of the density: what does not depend on the residuals.
  };
  std::vector<One> all;
  std::vector<double> weights;
};

Likelihood::Likelihood(std::span<const Row> rows) : factors_(std::make_unique<Factors>()) {
  const auto count = static_cast<Eigen::Index>(rows.size());
  Eigen::MatrixXd alike(count, count);
  for (Eigen::Index i = 0; i < count; ++i) {
    for (Eigen::Index j = 0; j < count; ++j) {
      const Row &one = rows[static_cast<std::size_t>(i)], &other = rows[static_cast<std::size_t>(j)];
      const double apart = std::abs(std::log2(static_cast<double>(std::max<std::int64_t>(one.size.count, 1))) -
                                    std::log2(static_cast<double>(std::max<std::int64_t>(other.size.count, 1))));
      alike(i, j) = std::exp(-apart / octaves) * (one.series == other.series ? 1 : of_others);
    }
  }
  for (const double noise : noises) {
    for (const ModelError& error : errors) {
      Factors::One one;
      one.factor.compute(error.size * error.size * alike + noise * noise * Eigen::MatrixXd::Identity(count, count));
      const Eigen::MatrixXd lower = one.factor.matrixL();
      one.constant =
          -lower.diagonal().array().log().sum() - static_cast<double>(count) / 2 * std::log(2 * std::numbers::pi);
      factors_->all.push_back(std::move(one));
      factors_->weights.push_back(error.weight);
    }
  }
}

Likelihood::~Likelihood() = default;
Likelihood::Likelihood(Likelihood&&) noexcept = default;
Likelihood& Likelihood::operator=(Likelihood&&) noexcept = default;

double Likelihood::log_of(std::span<const double> residuals) const {
  const Eigen::Map<const Eigen::VectorXd> parted(residuals.data(), static_cast<Eigen::Index>(residuals.size()));
  std::vector<double> each;
  for (const Factors::One& one : factors_->all) {
    each.push_back(one.constant - one.factor.matrixL().solve(parted).squaredNorm() / 2);
  }
  return log_mean(each, factors_->weights);
}

}  // namespace espalier::diagnose
