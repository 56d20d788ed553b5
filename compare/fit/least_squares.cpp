#include "compare/fit/least_squares.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compare/statistics.h"

namespace espalier::compare {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd as_vector(std::span<const double> values) {
  return Eigen::Map<const VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

/// The median of the residuals' sizes as a standard deviation, enlarged for the coordinates that were fitted.
double robust_scale(const std::vector<double>& residuals, std::size_t coordinates, double least) {
  std::vector<double> sizes;
  for (const double residual : residuals) sizes.push_back(std::abs(residual));
  constexpr double median_of_normal = 0.6745;
  const auto count = static_cast<double>(residuals.size());
  const double freedom = std::max(count - static_cast<double>(coordinates), 1.0);
  return std::max(median(std::move(sizes)) / median_of_normal * std::sqrt(count / freedom), least);
}

double huber_cost(const std::vector<double>& residuals, double limit) {
  double cost = 0;
  for (const double residual : residuals) {
    const double size = std::abs(residual);
    cost += size <= limit ? size * size / 2 : limit * (size - limit / 2);
  }
  return cost;
}

std::vector<double> huber_weights(const std::vector<double>& residuals, double limit) {
  std::vector<double> weights;
  for (const double residual : residuals)
    weights.push_back(std::abs(residual) <= limit ? 1 : limit / std::abs(residual));
  return weights;
}

Result<MatrixXd> difference_quotients(const Residuals& residuals, const Fit& fit, double step) {
  MatrixXd jacobian(static_cast<Eigen::Index>(fit.residuals.size()), static_cast<Eigen::Index>(fit.point.size()));
  for (std::size_t column = 0; column < fit.point.size(); ++column) {
    std::vector<double> beside = fit.point;
    beside[column] += step;
    const auto moved = residuals(beside);
    if (!moved) return tl::unexpected(moved.error());
    jacobian.col(static_cast<Eigen::Index>(column)) = (as_vector(*moved) - as_vector(fit.residuals)) / step;
  }
  return jacobian;
}

void keep_jacobian(Fit& fit, const MatrixXd& jacobian) {
  fit.jacobian.clear();
  for (Eigen::Index row = 0; row < jacobian.rows(); ++row) {
    for (Eigen::Index column = 0; column < jacobian.cols(); ++column) fit.jacobian.push_back(jacobian(row, column));
  }
}

/// The normal equations at a point, ready to be damped.
struct Normal {
  MatrixXd matrix;
  VectorXd gradient;
};

Normal normal_equations(const MatrixXd& jacobian, const Fit& fit) {
  const VectorXd weights = as_vector(fit.weights);
  return {jacobian.transpose() * weights.asDiagonal() * jacobian,
          jacobian.transpose() * weights.asDiagonal() * as_vector(fit.residuals)};
}

/// The damped step, cut to the largest move and to the bounds.
std::vector<double> damped_point(const Normal& normal, const Fit& fit, double damping, const FitOptions& options) {
  MatrixXd damped = normal.matrix;
  const double smallest = 1e-12 * std::max(normal.matrix.diagonal().maxCoeff(), 1e-12);
  for (Eigen::Index i = 0; i < damped.rows(); ++i) damped(i, i) += damping * std::max(normal.matrix(i, i), smallest);
  const VectorXd step = -damped.ldlt().solve(normal.gradient);
  std::vector<double> point = fit.point;
  for (std::size_t i = 0; i < point.size(); ++i) {
    const double move = step(static_cast<Eigen::Index>(i));
    if (!std::isfinite(move)) continue;
    point[i] += std::clamp(move, -options.largest_move, options.largest_move);
    point[i] = std::clamp(point[i], -options.bound, options.bound);
  }
  return point;
}

double furthest_move(const std::vector<double>& from, const std::vector<double>& to) {
  double furthest = 0;
  for (std::size_t i = 0; i < from.size(); ++i) furthest = std::max(furthest, std::abs(to[i] - from[i]));
  return furthest;
}

constexpr double first_damping = 1e-3;
constexpr double max_damping = 1e8;
constexpr double small_move = 1e-4;
constexpr double small_gain = 1e-6;
constexpr double worthwhile = 0.98;  // of the cost, after a nudge that counts

/// One step: tries dampings until the cost falls; converged when it hardly falls, or none makes it fall.
void take_step(const Residuals& residuals, const Normal& normal, double limit, const FitOptions& options,
               double& damping, Fit& fit) {
  const double cost = huber_cost(fit.residuals, limit);
  for (; damping < max_damping; damping *= 8) {
    std::vector<double> point = damped_point(normal, fit, damping, options);
    if (furthest_move(fit.point, point) < small_move) break;
    auto moved = residuals(point);
    if (!moved) continue;
    const double moved_cost = huber_cost(*moved, limit);
    if (!(moved_cost < cost)) continue;
    fit.converged = cost - moved_cost < small_gain * cost;
    fit.point = std::move(point);
    fit.residuals = std::move(*moved);
    damping = std::max(damping / 6, 1e-9);
    return;
  }
  damping = first_damping;
  fit.converged = true;
}

/// Tries to move one coordinate at a time, for where a kink hides the way down from the Jacobian. True when one helped.
bool nudge(const Residuals& residuals, double limit, const FitOptions& options, Fit& fit) {
  bool helped = false;
  for (std::size_t i = 0; i < fit.point.size(); ++i) {
    for (const double move : {0.1, -0.1, 0.02, -0.02}) {
      std::vector<double> point = fit.point;
      point[i] = std::clamp(point[i] + move, -options.bound, options.bound);
      auto moved = residuals(point);
      if (!moved || !(huber_cost(*moved, limit) < worthwhile * huber_cost(fit.residuals, limit))) continue;
      fit.point = std::move(point);
      fit.residuals = std::move(*moved);
      helped = true;
      break;
    }
  }
  return helped;
}

double root_mean_square(const std::vector<double>& residuals) {
  double sum = 0;
  for (const double residual : residuals) sum += residual * residual;
  return std::sqrt(sum / static_cast<double>(residuals.size()));
}

/// Steps until the cost settles; leaves weights, scale and Jacobian of the last point.
Result<void> descend(const Residuals& residuals, bool robust, const FitOptions& options, Fit& fit) {
  double damping = first_damping;
  int nudges = options.max_nudges;
  fit.converged = false;
  for (int step = 0;; ++step) {
    fit.scale = robust_scale(fit.residuals, fit.point.size(), options.min_scale);
    const double limit = robust ? options.huber * fit.scale : std::numeric_limits<double>::infinity();
    fit.weights = huber_weights(fit.residuals, limit);
    const auto jacobian = difference_quotients(residuals, fit, options.jacobian_step);
    if (!jacobian) return tl::unexpected(jacobian.error());
    keep_jacobian(fit, *jacobian);
    if (fit.point.empty() || step >= options.max_steps) return {};
    if (fit.converged && (nudges-- == 0 || root_mean_square(fit.residuals) < options.min_scale ||
                          !nudge(residuals, limit, options, fit))) {
      return {};
    }
    if (std::exchange(fit.converged, false)) continue;  // nudged: the Jacobian is of another point
    take_step(residuals, normal_equations(*jacobian, fit), limit, options, damping, fit);
    ++fit.steps;
  }
}

}  // namespace

Result<Fit> fit_least_squares(const Residuals& residuals, std::vector<double> start, const FitOptions& options) {
  Fit fit;
  fit.point = std::move(start);
  auto first = residuals(fit.point);
  if (!first) return tl::unexpected(first.error());
  fit.residuals = std::move(*first);
  // Plain squares first: a start far off has large residuals that are not outliers, only further from their end.
  for (const bool robust : {false, true}) {
    if (auto done = descend(residuals, robust, options, fit); !done) return tl::unexpected(done.error());
  }
  return fit;
}

/// Runs that scatter, or a model that does not fit, make every parameter uncertain; what is flat is what has no effect.
constexpr double max_judged_noise = 0.05;

Identification identify(const Fit& fit, double min_noise, double max_error) {
  Identification result;
  const auto columns = static_cast<Eigen::Index>(fit.point.size());
  const auto rows = static_cast<Eigen::Index>(fit.residuals.size());
  if (columns == 0) return result;
  MatrixXd weighted(std::max(rows, columns), columns);
  weighted.setZero();
  for (Eigen::Index row = 0; row < rows; ++row) {
    for (Eigen::Index column = 0; column < columns; ++column) {
      weighted(row, column) = std::sqrt(fit.weights[static_cast<std::size_t>(row)]) *
                              fit.jacobian[static_cast<std::size_t>(row * columns + column)];
    }
  }
  const Eigen::JacobiSVD<MatrixXd> svd(weighted, Eigen::ComputeThinV);
  const double noise = std::max(fit.scale, min_noise);
  VectorXd variance = VectorXd::Zero(columns);
  for (Eigen::Index k = columns; k-- > 0;) {
    const double error = noise / svd.singularValues()(k);
    VectorXd direction = svd.matrixV().col(k);
    variance += error * error * direction.cwiseAbs2();
    if (std::min(noise, max_judged_noise) / svd.singularValues()(k) <= max_error) continue;
    Eigen::Index largest = 0;
    direction.cwiseAbs().maxCoeff(&largest);
    if (direction(largest) < 0) direction = -direction;
    result.flat.push_back({{direction.data(), direction.data() + columns}, error});
  }
  for (Eigen::Index i = 0; i < columns; ++i) result.standard_error.push_back(std::sqrt(variance(i)));
  const double least = svd.singularValues()(columns - 1);
  result.condition = least > 0 ? svd.singularValues()(0) / least : std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace espalier::compare
