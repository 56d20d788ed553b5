#include "compare/fit/sampled_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace espalier::compare {
namespace {

constexpr int max_rounds = 16;
constexpr int max_halvings = 6;
constexpr int max_idle_rounds = 2;
constexpr double less_by_a_hundredth = 0.99;
constexpr double close_enough = 1.0 / 30;  // of the scale of residuals

double mean_size(std::span<const double> residuals) {
  double sum = 0;
  for (const double residual : residuals) sum += std::abs(residual);
  return sum / static_cast<double>(residuals.size());
}

}  // namespace

Result<void> SampledTimes::sample(const std::vector<double>& costs, std::span<const std::size_t> moving,
                                  std::span<const std::size_t> runs) {
  const auto times = times_(costs, runs);
  if (!times) return tl::unexpected(times.error());
  return add_tangents(costs, *times, moving, runs);
}

Result<void> SampledTimes::add_tangents(const std::vector<double>& costs, std::span<const double> times,
                                        std::span<const std::size_t> moving, std::span<const std::size_t> runs) {
  std::vector<std::vector<double>> slopes(runs.size(), std::vector<double>(costs.size(), 0.0));
  for (const std::size_t cost : moving) {
    std::vector<double> beside = costs;
    beside[cost] *= std::exp(step_);
    const auto moved = times_(beside, runs);
    if (!moved) return tl::unexpected(moved.error());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      slopes[i][cost] = ((*moved)[i] - times[i]) / (beside[cost] - costs[cost]);
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) tangents_.add(runs[i], costs, times[i], std::move(slopes[i]));
  return {};
}

bool SampledTimes::depend_on(std::span<const std::size_t> runs, std::size_t cost) const {
  return std::ranges::any_of(runs, [&](std::size_t run) { return tangents_.depends_on(run, cost); });
}

std::vector<double> SampledTimes::estimates(const SampledProblem& problem, std::span<const double> point) const {
  const std::vector<double> costs = problem.costs(point);
  std::vector<double> times;
  for (const std::size_t run : problem.runs) times.push_back(tangents_.estimate(run, costs));
  return times;
}

/// The times at a point, or where they cannot be had at one nearer to `from`, which it becomes.
Result<std::vector<double>> SampledTimes::times_towards(const SampledProblem& problem, const std::vector<double>& from,
                                                        std::vector<double>& point) const {
  auto times = times_(problem.costs(point), problem.runs);
  for (int halvings = 0; !times && halvings < max_halvings; ++halvings) {
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = (point[i] + from[i]) / 2;
    times = times_(problem.costs(point), problem.runs);
  }
  return times;
}

/// Adds tangents of the runs that differ from their estimates by more than the tolerance. True when there was none.
Result<bool> SampledTimes::hold_against(const SampledProblem& problem, std::span<const double> point,
                                        std::span<const double> times, double tolerance) {
  const std::vector<double> costs = problem.costs(point);
  const std::vector<double> estimated = estimates(problem, point);
  std::vector<std::size_t> apart;
  std::vector<double> times_apart;
  for (std::size_t i = 0; i < times.size(); ++i) {
    tangents_.correct(problem.runs[i], costs, times[i]);
    if (std::abs(estimated[i] - times[i]) <= tolerance * times[i]) continue;
    apart.push_back(problem.runs[i]);
    times_apart.push_back(times[i]);
  }
  if (apart.empty()) return true;
  if (auto added = add_tangents(costs, times_apart, problem.moving, apart); !added) {
    return tl::unexpected(added.error());
  }
  return false;
}

Result<Fit> SampledTimes::fit(const SampledProblem& problem, const std::vector<double>& start,
                              const FitOptions& options) {
  std::vector<std::size_t> unknown;
  std::ranges::copy_if(problem.runs, std::back_inserter(unknown),
                       [this](std::size_t run) { return !tangents_.is_known(run); });
  if (!unknown.empty()) {
    const auto sampled = sample(problem.costs(start), problem.moving, unknown);
    if (!sampled) return tl::unexpected(sampled.error());
  }
  const Residuals estimated = [&](std::span<const double> point) -> Result<std::vector<double>> {
    return problem.residuals(point, estimates(problem, point));
  };
  std::vector<double> best = start;
  std::optional<std::vector<double>> residuals;  // at `best`, by the times themselves
  bool converged = false;
  int idle_rounds = 0;
  for (int round = 0; round < max_rounds && !converged; ++round) {
    auto fit = fit_least_squares(estimated, best, options);
    if (!fit) return fit;
    const bool is_settled = fit->converged || start.empty();
    const auto times = times_towards(problem, best, fit->point);
    if (!times) return tl::unexpected(times.error());
    std::vector<double> simulated = problem.residuals(fit->point, *times);
    const double before = residuals ? mean_size(*residuals) : std::numeric_limits<double>::infinity();
    const double now = mean_size(simulated);
    idle_rounds = now < less_by_a_hundredth * before ? 0 : idle_rounds + 1;
    const auto agrees =
        hold_against(problem, fit->point, *times, std::max(options.min_scale, close_enough * fit->scale));
    if (!agrees) return tl::unexpected(agrees.error());
    converged = (*agrees && is_settled) || idle_rounds == max_idle_rounds;
    if (now >= before) continue;
    best = std::move(fit->point);
    residuals = std::move(simulated);
  }
  FitOptions only_look = options;
  only_look.max_steps = 0;
  auto fit = fit_least_squares(estimated, best, only_look);
  if (!fit) return fit;
  fit->residuals = std::move(*residuals);
  fit->converged = converged;
  return fit;
}

}  // namespace espalier::compare
