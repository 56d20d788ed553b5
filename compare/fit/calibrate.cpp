#include "compare/fit/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "compare/fit/fit_variables.h"
#include "compare/fit/sampled_fit.h"

namespace espalier::compare {
namespace {

constexpr double min_prediction = 1e-12;  // seconds, so that a logarithm exists
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
        all_(measured.size()),
        sampled_(
            measured.size(),
            [this](std::span<const double> costs, std::span<const std::size_t> which) {
              return predict_at(costs, which);
            },
            options.fit.jacobian_step) {
    std::iota(all_.begin(), all_.end(), std::size_t{0});
  }

  Result<Calibration> run() {
    auto before = predict(topology_, all_);
    if (!before) return tl::unexpected(before.error());
    auto given = fit_and_settle(variables_.start());
    if (!given) return tl::unexpected(given.error());
    auto all = with_absent(std::move(*given));
    if (!all) return tl::unexpected(all.error());
    return finish(std::move(*before), all->fit, all->known);
  }

 private:
  Result<std::vector<double>> predict(const Topology& topology, std::span<const std::size_t> which) const {
    if (options_.on_prediction) options_.on_prediction();
    auto times = predict_(topology, which);
    if (times) ESPALIER_CHECK(times->size() == which.size(), "a predicted time per run");
    return times;
  }

  Result<std::vector<double>> predict_at(std::span<const double> costs, std::span<const std::size_t> which) const {
    const auto changed = with_parameters(topology_, variables_.parameters(), values_or_costs(costs));
    if (!changed) return tl::unexpected(changed.error());
    return predict(*changed, which);
  }

  /// Runs take sums of costs: of rates, seconds per byte. The same turns costs into values again.
  [[nodiscard]] std::vector<double> values_or_costs(std::span<const double> given) const {
    std::vector<double> turned(given.begin(), given.end());
    for (std::size_t i = 0; i < turned.size(); ++i) {
      const ParameterKind kind = variables_.parameters()[i].kind;
      const bool is_rate = kind == ParameterKind::bandwidth || kind == ParameterKind::reduce_bandwidth;
      if (is_rate && turned[i] > 0) turned[i] = 1 / turned[i];
    }
    return turned;
  }

  struct Settled {
    Fit fit;
    Identification known;
  };

  /// Fits all coordinates, settles the flattest direction and fits again, until there is none.
  Result<Settled> fit_and_settle(std::vector<double> point) {
    if (auto dropped = drop_unused(point); !dropped) return tl::unexpected(dropped.error());
    while (true) {
      auto fit = fit_runs(all_, point);
      if (!fit) return tl::unexpected(fit.error());
      Identification known = identify(*fit, options_.min_noise, options_.max_error);
      if (known.flat.empty()) return Settled{std::move(*fit), std::move(known)};
      point = fit->point;
      ambiguities_.push_back(variables_.settle(known.flat.front(), point));
    }
  }

  /// Most classes of a large machine are on no route: to move them through every fit would cost a simulation each.
  Result<void> drop_unused(std::vector<double>& point) {
    const auto sampled = sampled_.sample(values_or_costs(variables_.values(point)), variables_.moving(), all_);
    if (!sampled) return tl::unexpected(sampled.error());
    std::vector<std::size_t> unused;
    for (std::size_t column = 0; column < point.size(); ++column) {
      const auto is_used = [&](std::size_t parameter) { return sampled_.depend_on(all_, parameter); };
      if (std::ranges::none_of(variables_.members(column), is_used)) unused.push_back(column);
    }
    if (!unused.empty()) ambiguities_.push_back(variables_.hold_unused(unused, point));
    return {};
  }

  /// The mean size of the residuals, enlarged for what was spent on coordinates.
  [[nodiscard]] static double misfit(const Fit& fit) {
    double sum = 0;
    for (const double residual : fit.residuals) sum += std::abs(residual);
    const auto runs = static_cast<double>(fit.residuals.size());
    return sum / runs * std::sqrt(runs / std::max(runs - static_cast<double>(fit.point.size()), 0.5));
  }

  /// Tries also what the topology leaves out, unless the runs are explained as well as they are repeatable; keeps it
  /// when it explains them better.
  Result<Settled> with_absent(Settled given) {
    if (misfit(given.fit) <= options_.min_noise) return given;
    const FitVariables without = variables_;
    const std::vector<Ambiguity> known_before = ambiguities_;
    std::vector<double> point = given.fit.point;
    if (variables_.add_absent(point) == 0) return given;
    auto all = fit_and_settle(std::move(point));
    if (!all) return tl::unexpected(all.error());
    constexpr double worth_it = 0.97;
    if (misfit(all->fit) < worth_it * misfit(given.fit)) return all;
    variables_ = without;
    ambiguities_ = known_before;
    return given;
  }

  Result<Fit> fit_runs(const std::vector<std::size_t>& which, const std::vector<double>& start) {
    const auto costs = [this](std::span<const double> point) { return values_or_costs(variables_.values(point)); };
    const auto residuals = [&](std::span<const double>, std::span<const double> times) {
      std::vector<double> logarithms;
      for (std::size_t i = 0; i < which.size(); ++i) {
        logarithms.push_back(std::log(std::max(times[i], min_prediction) / measured_[which[i]]));
      }
      return logarithms;
    };
    return sampled_.fit({which, costs, residuals, variables_.moving()}, start, options_.fit);
  }

  Result<HoldOut> hold_out(const Fit& fit) {
    const std::size_t parts = std::min(options_.hold_out_parts, measured_.size());
    HoldOut result{.parts = 0, .runs = measured_.size(), .is_asked_for = options_.hold_out_parts > 0, .errors = {}};
    if (parts < 2 || measured_.size() - (measured_.size() + parts - 1) / parts < fit.point.size()) return result;
    std::vector<double> errors;
    for (std::size_t fold = 0; fold < parts; ++fold) {
      std::vector<std::size_t> kept, left_out;
      for (const std::size_t i : all_) (i % parts == fold ? left_out : kept).push_back(i);
      const auto other = fit_runs(kept, fit.point);
      if (!other) return tl::unexpected(other.error());
      const auto predicted = predict_at(values_or_costs(variables_.values(other->point)), left_out);
      if (!predicted) return tl::unexpected(predicted.error());
      for (std::size_t i = 0; i < left_out.size(); ++i) {
        errors.push_back(relative_error((*predicted)[i], measured_[left_out[i]]));
      }
    }
    result.parts = parts;
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
                       *held_out,
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
  SampledTimes sampled_;
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

}  // namespace espalier::compare
