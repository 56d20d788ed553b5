#include "diagnose/late_beside.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "diagnose/places.h"

namespace espalier::diagnose {
namespace {

constexpr double prior_of_late = 0.07 / 0.4 * 0.1;  ///< Beside one fault, a second one that is a late rank.
constexpr double told_apart_delays = 150;           ///< From microseconds to a tenth of a second, by noise.
constexpr double max_slow_rate = 0.97;

std::vector<double> rates_beside_late(const Curve& curve) {
  if (!has_rate(curve.fault)) return {curve.rates.back()};
  constexpr double ratio = 0.95, min_rate = 0.1;
  std::vector<double> rates;
  for (double rate = max_slow_rate; rate > min_rate; rate *= ratio) rates.push_back(rate);
  return rates;
}

std::vector<double> rates_near(const Fault& fault) {
  std::vector<double> rates = {fault.rate};
  constexpr double reach = 0.12, step = 0.01;
  for (double move = -reach; fault.kind == Fault::Kind::slow && move <= reach; move += step) {
    rates.push_back(std::min(max_slow_rate, fault.rate * (1 + move)));
  }
  return rates;
}

std::vector<double> longer_by(std::vector<double> times, double delay) {
  for (double& time : times) time += delay;
  return times;
}

/// By which all rows are longer than this, by least squares of the logarithms: steps of Gauss and Newton.
double delay_over(const FaultSearch& search, std::span<const double> alone) {
  double delay = 0;
  constexpr int steps = 12;
  for (int step = 0; step < steps; ++step) {
    double slope = 0, curvature = 0;
    for (std::size_t row = 0; row < alone.size(); ++row) {
      const double time = alone[row] + delay;
      slope += std::log(search.measured()[row] / time) / time;
      curvature += 1 / (time * time);
    }
    delay = std::max(0.0, delay + slope / curvature);
  }
  return delay;
}

/// The rate and delay that fit best by the curve, where rows with the fault alone take so many times what it says.
Hypothesis fit_beside_late(const FaultSearch& search, const Curve& curve, std::span<const double> rates,
                           std::span<const double> ratios) {
  Hypothesis found{{&curve}, {curve.fault, {Fault::Kind::late, {}, 1, 0, false}}, curve.prior * prior_of_late, 0, {}};
  std::vector<double> each;
  double best = -std::numeric_limits<double>::infinity();
  for (const double rate : rates) {
    std::vector<double> alone;
    for (std::size_t row = 0; row < ratios.size(); ++row) alone.push_back(curve.time(row, rate) * ratios[row]);
    const double delay = delay_over(search, alone);
    std::vector<double> times = longer_by(std::move(alone), delay);
    each.push_back(search.log_likelihood(times));
    if (each.back() <= best) continue;
    best = each.back();
    found.faults[0].rate = rate;
    found.faults[1].delay = delay;
    found.times = std::move(times);
  }
  found.log_evidence = log_mean(each) - std::log(told_apart_delays);
  return found;
}

/// Predicts it, and moves rate and delay.
void predict_beside_late(const FaultSearch& search, Hypothesis& of) {
  const double over_all = of.log_evidence - search.log_likelihood(of.times);
  constexpr int rounds = 3;
  for (int round = 0; round < rounds; ++round) {
    const Fault& fault = of.faults[0];
    const auto alone = search.predict_all(std::span(&fault, 1));
    if (!alone) return;
    std::vector<double> ratios;
    for (std::size_t row = 0; row < alone->size(); ++row) {
      ratios.push_back((*alone)[row] / of.curves[0]->time(row, fault.rate));
    }
    of.faults[1].delay = delay_over(search, *alone);
    of.times = longer_by(*alone, of.faults[1].delay);
    of.log_evidence = search.log_likelihood(of.times) + over_all;
    const Hypothesis moved = fit_beside_late(search, *of.curves[0], rates_near(fault), ratios);
    constexpr double little = 0.3;  // Of a logarithm: no other rate says more.
    if (search.log_likelihood(moved.times) + over_all < of.log_evidence + little) return;
    of.faults[0].rate = moved.faults[0].rate;
  }
}

}  // namespace

std::vector<Hypothesis> find_late_beside(const FaultSearch& search, std::span<const FaultClass> classes,
                                         const DiagnoseOptions& options) {
  const std::span<const Curve> curves = search.curves();
  const std::vector<double> as_said(search.measured().size(), 1);
  std::vector<Hypothesis> found(curves.size());
  run_parallel(curves.size(), options.threads, [&](std::size_t i) {
    found[i] = fit_beside_late(search, curves[i], rates_beside_late(curves[i]), as_said);
  });
  std::ranges::stable_sort(found, std::ranges::greater(), posterior);
  if (options.estimate || found.empty()) return found;
  constexpr std::size_t max_predicted = 12;
  const auto predict = [&](std::span<Hypothesis> each) {
    run_parallel(each.size(), options.threads, [&](std::size_t i) { predict_beside_late(search, each[i]); });
  };
  predict(likely(found, max_predicted));
  std::ranges::stable_sort(found, std::ranges::greater(), posterior);
  return in_every_place(classes, std::move(found), options.max_places, predict);
}

}  // namespace espalier::diagnose
