#pragma once

// Tested by: tests/unit/compare/fit/calibrate_test.cpp

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "compare/fit/least_squares.h"
#include "compare/fit/link_parameters.h"
#include "compare/statistics.h"
#include "topology/topology.h"

namespace espalier::compare {

/// The times, in seconds, that some of the runs would take on a topology with other parameters: a simulation of the
/// very schedules that ran. `which` are indices of runs. Deterministic.
using PredictTimes =
    std::function<Result<std::vector<double>>(const Topology& topology, std::span<const std::size_t> which)>;

enum class ParameterState : std::uint8_t {
  fitted,    ///< By itself.
  joint,     ///< Together with others of its kind, which keep their ratio.
  held,      ///< Left as the topology gives it: the runs do not tell it.
  vanished,  ///< The runs say that there is nothing: no overhead or latency, no limit of the reduction.
};

/// "fitted", "joint", "held", "vanished".
std::string_view to_string(ParameterState state);

struct FittedParameter {
  Parameter parameter;
  ParameterState state = ParameterState::fitted;
  double value = 0;           ///< In bytes per second or seconds; 0 where vanished or absent.
  double standard_error = 0;  ///< Relative; 0 unless fitted or joint.
};

/// Parameters that the runs cannot tell apart, and what was done about it.
struct Ambiguity {
  std::vector<std::size_t> parameters;  ///< Indices; of one alone: the runs hardly depend on it.
  std::string action;                   ///< "overhead of nvlink is held at none"
};

/// How well runs are predicted that were left out of the fit.
struct HoldOut {
  std::size_t parts = 0;      ///< The runs were dealt into so many, each left out once; 0: none was.
  std::size_t runs = 0;       ///< All of them.
  bool is_asked_for = false;  ///< Otherwise, of no parts, there were too few runs.
  ErrorSummary errors;
};

struct CalibrateOptions {
  double min_noise = 5e-3;  ///< Runs are not taken for repeatable beyond this, whatever the residuals say.
  double max_error = 0.3;   ///< A parameter that the runs leave open by more than this part is not fitted.
  /// Into how many parts runs are dealt, each predicted by a fit without it: at most one for each run, and none of 0.
  std::size_t hold_out_parts = 5;
  FitOptions fit;
  std::function<void()> on_prediction;  ///< Called for each; for progress.
};

struct Calibration {
  std::vector<FittedParameter> parameters;
  std::vector<Ambiguity> ambiguities;
  std::vector<double> before;   ///< Predicted seconds, run by run, with the given topology.
  std::vector<double> after;    ///< With the calibrated one.
  std::vector<double> weights;  ///< Of the robust fit; well below 1 for runs that do not fit in.
  ErrorSummary errors_before;   ///< Of (predicted - measured) / measured.
  ErrorSummary errors_after;
  HoldOut hold_out;
  double condition = 1;  ///< Of the parameters that were fitted, in their logarithms.
  bool converged = false;
  Topology topology;  ///< The calibrated one, numbers rounded to four digits.
};

/// Fits the topology's parameters to measured times by robust least squares over logarithms: residuals are
/// log(predicted / measured), coordinates the logarithms of the parameters. Directions that the runs do not determine
/// are found by the singular values of the Jacobian; in each, one parameter is held (an overhead before a reduction
/// rate before a latency before a bandwidth), or, when all are of one kind, they are fitted jointly; then it is fitted
/// again. What the topology leaves out (an overhead, a reduction's limit) is tried afterwards, and kept when it
/// explains the runs better (docs/compare.md, "Calibration").
/// Requires: measured times above 0, at least one; hold_out_parts other than 1. `reduces` says whether runs reduce.
/// Errors: those of `predict` on the given topology.
Result<Calibration> calibrate(const Topology& topology, std::span<const double> measured, bool reduces,
                              const PredictTimes& predict, const CalibrateOptions& options = {});

}  // namespace espalier::compare
