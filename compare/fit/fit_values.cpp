#include "compare/fit/fit_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "compare/fit/least_squares.h"
#include "compare/fit/sampled_fit.h"

namespace espalier::compare {
namespace {

constexpr double shortest = 1e-12;  // seconds, so that a logarithm exists

class ValuesFitter {
 public:
  ValuesFitter(std::span<const double> given, std::span<const double> measured, std::span<const double> importance,
               const PredictFrom& predict, const FitValuesOptions& options)
      : given_(given),
        measured_(measured),
        importance_(importance),
        predict_(predict),
        options_(options),
        sampled_(
            measured.size(),
            [this](std::span<const double> costs, std::span<const std::size_t> which) {
              return predict_(values_or_costs(costs), which);
            },
            options.fit.jacobian_step) {
    for (std::size_t i = 0; i < given.size(); ++i) free_.push_back(i);
  }

  Result<ValuesFit> run(std::span<const HoldOutPart> parts) {
    std::vector<std::size_t> all(measured_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    auto before = predict_(given_, all);
    if (!before) return tl::unexpected(before.error());
    const auto fit = fit_told(all);
    if (!fit) return tl::unexpected(fit.error());
    return finish(std::move(*before), *fit, all, parts);
  }

 private:
  [[nodiscard]] std::vector<double> values_at(std::span<const double> point) const {
    std::vector<double> values(given_.begin(), given_.end());
    for (std::size_t k = 0; k < free_.size(); ++k) values[free_[k]] *= std::exp(point[k]);
    return values;
  }

  /// Of rates the inverse is a cost. The same turns costs into values again.
  [[nodiscard]] std::vector<double> values_or_costs(std::span<const double> given) const {
    std::vector<double> turned(given.begin(), given.end());
    for (const std::size_t rate : options_.rates) turned[rate] = 1 / turned[rate];
    return turned;
  }

  [[nodiscard]] double price_of(std::size_t value) const {
    const bool is_rate = std::ranges::find(options_.rates, value) != options_.rates.end();
    return is_rate ? options_.rate_price : options_.price;
  }

  /// Fits what the runs tell; the rest is held.
  Result<Fit> fit_told(const std::vector<std::size_t>& which) {
    auto fit = fit_free(which);
    if (fit && hold_what_is_open(*fit)) fit = fit_free(which);
    return fit;
  }

  /// Of the runs, and then of the price of every coordinate.
  Result<Fit> fit_free(const std::vector<std::size_t>& which) {
    if (auto used = drop_unused(which); !used) return tl::unexpected(used.error());
    const auto costs = [this](std::span<const double> point) { return values_or_costs(values_at(point)); };
    const auto residuals = [&](std::span<const double> point, std::span<const double> times) {
      std::vector<double> all;
      for (std::size_t i = 0; i < which.size(); ++i) {
        all.push_back(std::log(std::max(times[i], shortest) / measured_[which[i]]) * importance_[which[i]]);
      }
      for (std::size_t k = 0; k < point.size(); ++k) all.push_back(point[k] * price_of(free_[k]));
      return all;
    };
    return sampled_.fit({which, costs, residuals, free_}, std::vector<double>(free_.size(), 0.0), options_.fit);
  }

  Result<void> drop_unused(const std::vector<std::size_t>& which) {
    if (!is_sampled_) {
      auto sampled = sampled_.sample(values_or_costs(given_), free_, which);
      if (!sampled) return tl::unexpected(sampled.error());
      is_sampled_ = true;
    }
    std::erase_if(free_, [&](std::size_t value) { return !sampled_.depend_on(which, value); });
    return {};
  }

  /// Holds what the runs narrow down to no less than a good part of what the price alone does. True when anything was
  /// held.
  bool hold_what_is_open(const Fit& fit) {
    const Identification known = identify(fit, options_.min_noise, options_.max_error);
    constexpr double good_part = 0.7;
    const double noise = std::max(fit.scale, options_.min_noise);
    std::vector<std::size_t> told;
    for (std::size_t k = 0; k < free_.size(); ++k) {
      if (known.standard_error[k] <= std::min(options_.max_error, good_part * noise / price_of(free_[k])))
        told.push_back(free_[k]);
    }
    if (told.size() == free_.size()) return false;
    free_ = std::move(told);
    return true;
  }

  Result<ValuesFit> finish(std::vector<double> before, const Fit& fit, const std::vector<std::size_t>& all,
                           std::span<const HoldOutPart> parts) {
    ValuesFit result;
    result.before = std::move(before);
    const std::vector<double> values = values_at(fit.point);
    auto after = predict_(values, all);
    if (!after) return tl::unexpected(after.error());
    result.after = std::move(*after);
    result.weights.assign(fit.weights.begin(), fit.weights.begin() + static_cast<std::ptrdiff_t>(all.size()));
    result.converged = fit.converged;
    const Identification known = identify(fit, options_.min_noise, options_.max_error);
    for (std::size_t i = 0; i < given_.size(); ++i) {
      result.values.push_back({given_[i], values[i], ParameterState::held, 0});
    }
    for (std::size_t k = 0; k < free_.size(); ++k) {
      result.values[free_[k]].state = ParameterState::fitted;
      result.values[free_[k]].standard_error = known.standard_error[k];
    }
    const std::vector<std::size_t> free = free_;
    for (const HoldOutPart& part : parts) {
      free_ = free;
      auto predicted = predict_without(part, all);
      if (!predicted) return tl::unexpected(predicted.error());
      result.held_out.push_back(std::move(*predicted));
    }
    return result;
  }

  Result<std::vector<double>> predict_without(const HoldOutPart& part, const std::vector<std::size_t>& all) {
    std::vector<std::size_t> kept;
    for (const std::size_t run : all) {
      if (std::ranges::find(part.runs, run) == part.runs.end()) kept.push_back(run);
    }
    if (kept.empty()) return predict_(given_, part.runs);
    const auto other = fit_told(kept);
    if (!other) return tl::unexpected(other.error());
    return predict_(values_at(other->point), part.runs);
  }

  std::span<const double> given_;
  std::span<const double> measured_;
  std::span<const double> importance_;
  const PredictFrom& predict_;
  const FitValuesOptions& options_;
  std::vector<std::size_t> free_;
  SampledTimes sampled_;
  bool is_sampled_ = false;
};

}  // namespace

Result<ValuesFit> fit_values(std::span<const double> given, std::span<const double> measured,
                             std::span<const double> importance, const PredictFrom& predict,
                             std::span<const HoldOutPart> parts, const FitValuesOptions& options) {
  ESPALIER_CHECK(!measured.empty() && measured.size() == importance.size(), "runs, and how much each counts");
  return ValuesFitter(given, measured, importance, predict, options).run(parts);
}

}  // namespace espalier::compare
