#pragma once

// Tested by: tests/unit/compare/fit/least_squares_test.cpp

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::compare {

/// Residuals at a point; always as many.
using Residuals = std::function<Result<std::vector<double>>(std::span<const double> point)>;

struct FitOptions {
  double huber = 1.345;         ///< Residuals above this many scales count linearly. Source: P. Huber, 1964.
  double min_scale = 1e-3;      ///< The scale is never taken for smaller: nothing is measured better.
  double jacobian_step = 5e-3;  ///< Step of the forward differences.
  double largest_move = 1.0;    ///< No coordinate moves further in one step.
  double bound = 14.0;          ///< No coordinate gets further than this from 0.
  int max_steps = 40;
  int max_nudges = 4;  ///< So often coordinates are tried one by one where steps no longer help; see fit_least_squares.
};

struct Fit {
  std::vector<double> point;
  std::vector<double> residuals;
  std::vector<double> weights;   ///< Huber's, from 0 to 1, one per residual.
  std::vector<double> jacobian;  ///< At the point, row by row: residuals x coordinates.
  double scale = 0;              ///< Robust standard deviation of the residuals, for their degrees of freedom.
  int steps = 0;
  bool converged = false;
};

/// The point that makes the residuals small in Huber's sense: Levenberg-Marquardt steps on iteratively reweighted
/// squares, the Jacobian by forward differences. Deterministic. Requires: at least one residual. With no coordinates
/// the residuals are evaluated once. Errors: those of `residuals` at the start or beside a point that was reached; a
/// step into an error is not taken. Source: J. Moré, "The Levenberg-Marquardt algorithm: implementation and theory",
/// 1978 (damping by the columns' norms); P. Holland, R. Welsch, "Robust regression using iteratively reweighted
/// least-squares", 1977.
Result<Fit> fit_least_squares(const Residuals& residuals, std::vector<double> start, const FitOptions& options = {});

/// A direction in which the point can move without the residuals noticing.
struct FlatDirection {
  std::vector<double> components;  ///< A unit vector over the coordinates; the largest component is positive.
  double standard_error = 0;       ///< How far, in units of the coordinates, one standard deviation reaches.
};

/// What the residuals say about the coordinates.
struct Identification {
  std::vector<FlatDirection> flat;     ///< Flattest first.
  std::vector<double> standard_error;  ///< Of each coordinate; infinite where it is in a flat direction.
  double condition = 1;                ///< Largest over smallest singular value of the weighted Jacobian.
};

/// Singular values of the weighted Jacobian: a direction is flat when one standard deviation along it (the fit's scale,
/// at least `min_noise` and in this at most 5 %) is more than `max_error`.
Identification identify(const Fit& fit, double min_noise, double max_error);

}  // namespace espalier::compare
