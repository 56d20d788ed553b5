#include "compare/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "compare/fit_variables.h"

namespace espalier {
namespace {

constexpr double least_prediction = 1e-12;  // seconds, so that a logarithm exists
constexpr int written_digits = 4;

class Calibrator {
 public:
  Calibrator(const Topology& topology, std::span<const double> measured, bool reduces, const PredictTimes& predict,
             const CalibrateOptions& options)
      : topology_(topology),
        measured_(measured),
        predict_(predict),
        options_(options),
        variables_(find_parameters(topology, reduces)),
        all_(measured.size()) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  Result<Calibration> run() {
    auto before = predict(topology_, all_);
    if (!before) return tl::unexpected(before.error());
    std::optional<Fit> fit;
    while (true) {
      auto next = fit_runs(all_, fit ? fit->point : variables_.start());
      if (!next) return tl::unexpected(next.error());
      fit = std::move(*next);
      const Identification known = identify(*fit, options_.least_noise, options_.most_error);
      if (known.flat.empty()) return finish(std::move(*before), *fit, known);
      // The flattest direction first: what is done about it may settle the others.
      ambiguities_.push_back(variables_.settle(known.flat.front(), fit->point));
    }
  }

 private:
  Result<std::vector<double>> predict(const Topology& topology, std::span<const std::size_t> which) const {
    if (options_.on_prediction) options_.on_prediction();
    auto times = predict_(topology, which);
    if (times) ESPALIER_CHECK(times->size() == which.size(), "a predicted time per run");
    return times;
  }

  Result<std::vector<double>> predict_at(std::span<const double> point, std::span<const std::size_t> which) const {
    const auto changed = with_parameters(topology_, variables_.parameters(), variables_.values(point));
    if (!changed) return tl::unexpected(changed.error());
    return predict(*changed, which);
  }

  Result<Fit> fit_runs(const std::vector<std::size_t>& which, std::vector<double> start) const {
    const Residuals residuals = [&](std::span<const double> point) -> Result<std::vector<double>> {
      auto times = predict_at(point, which);
      if (!times) return times;
      for (std::size_t i = 0; i < which.size(); ++i) {
        (*times)[i] = std::log(std::max((*times)[i], least_prediction) / measured_[which[i]]);
      }
      return times;
    };
    return fit_least_squares(residuals, std::move(start), options_.fit);
  }

  Result<HoldOut> hold_out(const Fit& fit) const {
    const std::size_t every = std::min(options_.hold_out_every, measured_.size());
    HoldOut result;
    if (every < 2 || measured_.size() - (measured_.size() + every - 1) / every < fit.point.size()) return result;
    std::vector<double> errors;
    for (std::size_t fold = 0; fold < every; ++fold) {
      std::vector<std::size_t> kept, left_out;
      for (const std::size_t i : all_) (i % every == fold ? left_out : kept).push_back(i);
      const auto other = fit_runs(kept, fit.point);
      if (!other) return tl::unexpected(other.error());
      const auto predicted = predict_at(other->point, left_out);
      if (!predicted) return tl::unexpected(predicted.error());
      for (std::size_t i = 0; i < left_out.size(); ++i) {
        errors.push_back(relative_error((*predicted)[i], measured_[left_out[i]]));
      }
    }
    result.every = every;
    result.errors = summarize_errors(errors);
    return result;
  }

  [[nodiscard]] ErrorSummary errors_of(const std::vector<double>& predicted) const {
    std::vector<double> errors;
    for (std::size_t i = 0; i < predicted.size(); ++i) errors.push_back(relative_error(predicted[i], measured_[i]));
    return summarize_errors(errors);
  }

  Result<Calibration> finish(std::vector<double> before, const Fit& fit, const Identification& known) {
    auto written = with_parameters(topology_, variables_.parameters(), variables_.values(fit.point), written_digits);
    if (!written) return tl::unexpected(written.error());
    auto after = predict(*written, all_);
    if (!after) return tl::unexpected(after.error());
    auto held_out = hold_out(fit);
    if (!held_out) return tl::unexpected(held_out.error());
    const ErrorSummary errors_before = errors_of(before);
    const ErrorSummary errors_after = errors_of(*after);
    return Calibration{variables_.fitted(fit.point, known.standard_error),
                       std::move(ambiguities_),
                       std::move(before),
                       std::move(*after),
                       fit.weights,
                       errors_before,
                       errors_after,
                       std::move(*held_out),
                       known.condition,
                       fit.converged,
                       std::move(*written)};
  }

  const Topology& topology_;
  std::span<const double> measured_;
  const PredictTimes& predict_;
  const CalibrateOptions& options_;
  FitVariables variables_;
  std::vector<std::size_t> all_;
  std::vector<Ambiguity> ambiguities_;
};

}  // namespace

std::string_view to_string(ParameterState state) {
  switch (state) {
    case ParameterState::fitted: return "fitted";
    case ParameterState::joint: return "joint";
    case ParameterState::held: return "held";
    case ParameterState::vanished: return "vanished";
  }
  ESPALIER_CHECK(false, "a parameter state without a name");
}

Result<Calibration> calibrate(const Topology& topology, std::span<const double> measured, bool reduces,
                              const PredictTimes& predict, const CalibrateOptions& options) {
  ESPALIER_CHECK(!measured.empty(), "a calibration needs runs");
  return Calibrator(topology, measured, reduces, predict, options).run();
}

}  // namespace espalier
