#include "diagnose/fault_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "base/parallel.h"

namespace espalier::diagnose {
namespace {

/// Where curves are simulated, the one that shows most first. Between them times follow the reciprocal rate.
constexpr std::array slow_rates = {0.25, 0.5, 0.75};
constexpr double min_rate = 0.05, max_rate = 0.99;

/// Where likelihoods are taken: any part of the rate may be left.
std::vector<double> rates_to_try(double step) {
  std::vector<double> rates;
  for (double rate = max_rate; rate > min_rate; rate -= step) rates.push_back(rate);
  return rates;
}

constexpr double seen = 0.004;  ///< A row that changes by less does not show a fault.

/// Before anything is measured: half of the tables are of healthy machines.
constexpr double prior_healthy = 0.5, prior_single = 0.4, prior_late = 0.03;
constexpr double prior_setting = 0.004;  ///< Of each.

/// How often a part of a kind is what is wrong, beside a cable.
double weight_of(const std::string& what) {
  if (what == "nic") return 1.5;
  if (what == "gpu" || what == "cpu" || what == "switch" || what == "pcie") return 0.5;
  if (what == "host" || what == "rail" || what.starts_with("all ")) return 0.3;
  return 1;
}

/// The same for each of two faults.
std::vector<double> rates_of_pairs() {
  constexpr double ratio = 0.8;
  std::vector<double> rates;
  for (double rate = max_rate; rate > min_rate; rate *= ratio) rates.push_back(rate);
  return rates;
}

std::vector<double> logarithms_over(std::span<const double> measured, std::span<const double> times) {
  std::vector<double> residuals;
  for (std::size_t i = 0; i < measured.size(); ++i) residuals.push_back(std::log(measured[i] / times[i]));
  return residuals;
}

/// Calls `use` with every choice of one from each of these one or two.
template <class Use>
void for_each_choice(const std::vector<std::vector<double>>& from, const Use& use) {
  for (const double first : from.front()) {
    if (from.size() == 1) {
      use(std::array{first});
      continue;
    }
    for (const double second : from.back()) use(std::array{first, second});
  }
}

}  // namespace

double posterior(const Hypothesis& hypothesis) { return hypothesis.log_evidence + std::log(hypothesis.prior); }

std::span<Hypothesis> likely(std::span<Hypothesis> sorted, std::size_t max) {
  constexpr double max_behind = 30;  // As a logarithm: more than curves are off by.
  std::size_t used = 0;
  while (used < std::min(max, sorted.size()) && posterior(sorted[used]) > posterior(sorted[0]) - max_behind) ++used;
  return sorted.first(used);
}

bool are_within(std::span<const double> one, std::span<const double> other, double part) {
  for (std::size_t row = 0; row < one.size(); ++row) {
    if (std::abs(one[row] / other[row] - 1) > part) return false;
  }
  return true;
}

double Curve::time(std::size_t row, double rate) const {
  std::size_t after = 1;
  while (after + 1 < rates.size() && rates[after] > rate) ++after;
  const double from = 1 / rates[after - 1], to = 1 / rates[after], at = 1 / rate;
  const double part = (at - from) / (to - from);
  return std::max(times[after - 1][row] + part * (times[after][row] - times[after - 1][row]),
                  std::min(times[after - 1][row], times[after][row]));
}

double Curve::effect() const {
  double largest = 0;
  for (std::size_t row = 0; row < times.front().size(); ++row) {
    for (const std::vector<double>& slow : times)
      largest = std::max(largest, std::abs(slow[row] / times.front()[row] - 1));
  }
  return largest;
}

FaultSearch::FaultSearch(std::span<const Evidence> evidence, std::span<const FaultClass> classes,
                         const Predict& predict, const Predict& estimate, unsigned threads, std::size_t max_dense)
    : evidence_(evidence),
      classes_(classes),
      predict_(predict),
      estimate_(estimate),
      threads_(threads),
      max_dense_(max_dense) {
  std::vector<Likelihood::Row> rows;
  for (std::size_t series = 0; series < evidence.size(); ++series) {
    for (const Point& point : evidence[series].points) {
      rows.push_back({point.size, series});
      measured_.push_back(point.seconds);
    }
  }
  likelihood_.emplace(rows);
}

Result<std::vector<double>> FaultSearch::ask_all(const Predict& predict, std::span<const Fault> faults) const {
  std::vector<double> all;
  for (const Evidence& each : evidence_) {
    std::vector<Bytes> sizes;
    for (const Point& point : each.points) sizes.push_back(point.size);
    const auto times = predict(each.question, faults, sizes);
    if (!times) return tl::unexpected(times.error());
    all.insert(all.end(), times->begin(), times->end());
  }
  return all;
}

double FaultSearch::log_likelihood(std::span<const double> times) const {
  return likelihood_->log_of(logarithms_over(measured_, times));
}

double FaultSearch::gap(std::span<const double> times) const {
  double sum = 0;
  for (const double residual : logarithms_over(measured_, times)) sum += residual * residual;
  return sum;
}

Result<void> FaultSearch::start() {
  auto times = predict_all({});
  if (!times) return tl::unexpected(times.error());
  healthy_ = *std::move(times);
  return {};
}

std::optional<Curve> FaultSearch::make_curve(const Predict& by, Curve curve, std::span<const double> rates,
                                             const Curve* like) const {
  curve.rates = {1};
  curve.times = {healthy_};
  for (const double rate : rates) {
    curve.fault.rate = rate;
    const std::span faults(&curve.fault, 1);
    auto times = &by == &predict_ ? predict_all(faults) : ask_all(by, faults);
    if (!times) return std::nullopt;  // Such a machine does not run the collective; it would have been told.
    curve.rates.insert(curve.rates.begin() + 1, rate);
    curve.times.insert(curve.times.begin() + 1, *std::move(times));
    if (curve.rates.size() > 2) continue;
    if (curve.effect() < seen) return std::nullopt;
    if (like == nullptr) continue;
    std::vector<double> same;
    for (std::size_t row = 0; row < healthy_.size(); ++row) same.push_back(like->time(row, rate));
    if (are_within(curve.times.back(), same, same_within)) return std::nullopt;
  }
  return curve;
}

/// Some rows of every series with a slow part. Nothing where it cannot be predicted.
std::optional<std::vector<double>> FaultSearch::probe(const std::string& part) const {
  constexpr double rate = 0.35;
  const Fault fault{Fault::Kind::slow, part, rate, 0, false};
  std::vector<double> all;
  for (const Evidence& each : evidence_) {
    const std::size_t points = each.points.size();
    std::vector<Bytes> sizes;
    for (const std::size_t at : {points / 4, points * 5 / 8}) {
      if (sizes.empty() || sizes.back().count != each.points[at].size.count) sizes.push_back(each.points[at].size);
    }
    const auto times = (estimate_ ? estimate_ : predict_)(each.question, std::span(&fault, 1), sizes);
    if (!times) return std::nullopt;
    all.insert(all.end(), times->begin(), times->end());
  }
  return all;
}

std::vector<std::pair<std::string, double>> FaultSearch::places_in(const FaultClass& of) const {
  constexpr std::size_t max_probed = 6, max_places = 3;
  constexpr double unlike = 0.04;
  const std::size_t probed = std::min(max_probed, of.parts.size());
  struct Place {
    std::string part;
    double count = 0;
    std::optional<std::vector<double>> times;
  };
  std::vector<Place> places;
  for (std::size_t i = 0; i < probed; ++i) {
    Place place{of.parts[i * of.parts.size() / probed], 1, std::nullopt};
    if (probed > 1) place.times = probe(place.part);
    const auto is_like = [&](const Place& other) {
      return !place.times || !other.times || are_within(*place.times, *other.times, unlike);
    };
    auto known = std::ranges::find_if(places, is_like);
    if (known == places.end() && places.size() == max_places) known = places.end() - 1;
    if (known != places.end()) {
      ++known->count;
    } else {
      places.push_back(std::move(place));
    }
  }
  std::vector<std::pair<std::string, double>> found;
  for (const Place& place : places) found.emplace_back(place.part, place.count / static_cast<double>(probed));
  return found;
}

double FaultSearch::prior_of_class(std::size_t number) const {
  double all = 0;
  for (const FaultClass& each : classes_) {
    if (!each.is_setting) all += each.likelier * weight_of(each.what) * static_cast<double>(each.parts.size());
  }
  const FaultClass& of = classes_[number];
  if (of.is_setting) return prior_setting;
  return prior_single * of.likelier * weight_of(of.what) * static_cast<double>(of.parts.size()) / all;
}

std::vector<Curve> FaultSearch::curves_of(std::size_t number) const {
  const FaultClass& of = classes_[number];
  const double prior = prior_of_class(number);
  std::vector<Curve> curves;
  constexpr std::array only_rate = {0.5};  // Of no meaning: there is one such machine.
  if (of.is_setting) {
    const Fault set{Fault::Kind::setting, of.parts.front(), 1, 0, true};
    if (estimate_ && !is_near_largest(set)) return curves;
    if (auto made = make_curve(predict_, {number, set, {}, {}, prior}, only_rate, nullptr)) curves.push_back(*made);
    return curves;
  }
  for (const auto& [part, share] : places_in(of)) {
    const auto add = [&](Fault fault, double of_place, std::span<const double> rates, const Curve* like) {
      fault.part = part;
      Curve curve{number, std::move(fault), {}, {}, prior * share * of_place};
      auto made = make_curve(estimate_ ? estimate_ : predict_, std::move(curve), rates, like);
      if (made) curves.push_back(*made);
      return made;
    };
    const auto unknown = add({}, (1 - prior_of_gone) * (1 - prior_of_planned_around), slow_rates, nullptr);
    if (estimate_) continue;
    add({Fault::Kind::slow, {}, 1, 0, true}, (1 - prior_of_gone) * prior_of_planned_around, first_rates,
        unknown ? &*unknown : nullptr);
    if (of.may_be_gone) add({Fault::Kind::gone, {}, 1, 0, true}, prior_of_gone, only_rate, nullptr);
  }
  return curves;
}

void FaultSearch::add_classes(const std::function<void(const std::string&)>& on_class) {
  std::vector<std::vector<Curve>> of_class(classes_.size());
  std::mutex telling;
  run_parallel(classes_.size(), threads_, [&](std::size_t number) {
    if (const std::scoped_lock one_at_a_time(telling); on_class) on_class(classes_[number].parts.front());
    of_class[number] = curves_of(number);
  });
  for (std::vector<Curve>& curves : of_class) std::ranges::move(curves, std::back_inserter(curves_));
}

void FaultSearch::refine_planned_around() {
  constexpr double noise = 0.025;  // Per row.
  if (gap(healthy_) < noise * noise * static_cast<double>(measured_.size())) return;
  std::vector<Curve*> open;
  for (Curve& curve : curves_) {
    if (curve.fault.kind == Fault::Kind::slow && curve.fault.is_planned_around) open.push_back(&curve);
  }
  constexpr int rounds = 2;
  run_parallel(open.size(), threads_, [&](std::size_t i) {
    for (int round = 0; round < rounds; ++round) refine(*open[i]);
  });
  const auto fit = [&](const Curve* curve) { return posterior(explain_by({curve}, curve->prior)); };
  std::vector<std::pair<double, Curve*>> fitting;
  constexpr double min_weight = 0.5;  // What is rarely at fault, and has many parts, is not looked at as closely.
  for (Curve* curve : open) {
    if (weight_of(classes_[curve->fault_class].what) >= min_weight) fitting.emplace_back(fit(curve), curve);
  }
  std::ranges::sort(fitting, std::ranges::greater(), &std::pair<double, Curve*>::first);
  if (fitting.size() > max_dense_) fitting.resize(max_dense_);
  run_parallel(fitting.size(), threads_, [&](std::size_t i) { make_dense(*fitting[i].second); });
}

/// Plans change in steps, and times with them: where a rate surprises, more are predicted, halfway.
void FaultSearch::make_dense(Curve& curve) const {
  constexpr std::array first_tried = {0.3, 0.7};
  constexpr std::array then_tried = {0.4, 0.6, 0.25, 0.35, 0.55, 0.45, 0.65, 0.2};
  constexpr double surprise = 0.02;
  const auto add_all = [&](std::span<const double> rates) {
    double most = 0;
    for (const double rate : rates) most = std::max(most, add_rate(curve, rate));
    return most;
  };
  if (add_all(first_tried) > surprise) add_all(then_tried);
}

/// By which part what is predicted at most parts from what the curve said; 0 where such a rate is known.
double FaultSearch::add_rate(Curve& curve, double rate) const {
  constexpr double near = 0.04;
  const auto is_known = [&](double known) { return std::abs(std::log(rate / known)) < near; };
  if (std::ranges::any_of(curve.rates, is_known)) return 0;
  Fault fault = curve.fault;
  fault.rate = rate;
  auto times = predict_all(std::span(&fault, 1));
  if (!times) return 0;
  double most = 0;
  for (std::size_t row = 0; row < times->size(); ++row) {
    most = std::max(most, std::abs((*times)[row] / curve.time(row, rate) - 1));
  }
  const auto place = std::ranges::lower_bound(curve.rates, rate, std::ranges::greater());
  curve.times.insert(curve.times.begin() + (place - curve.rates.begin()), *std::move(times));
  curve.rates.insert(place, rate);
  return most;
}

/// How badly times fit, where rows that are far off, which another fault may explain, say no more than some.
double FaultSearch::misfit(std::span<const double> times) const {
  constexpr double off = 0.05, max_short = 9, max_long = 16;  // Squares; no other fault makes what is too long shorter.
  double sum = 0;
  for (const double residual : logarithms_over(measured_, times)) {
    const double parted = residual / off;
    sum += std::min(parted * parted, residual > 0 ? max_short : max_long);
  }
  return sum;
}

std::pair<double, double> FaultSearch::best_of_two(const Curve& curve) const {
  constexpr double step = 0.01;
  const bool is_gone = !has_rate(curve.fault);
  std::pair<double, double> best(1, std::numeric_limits<double>::infinity());
  for (const double rate : is_gone ? std::vector{curve.rates.back()} : rates_to_try(step)) {
    std::vector<double> times;
    for (std::size_t row = 0; row < measured_.size(); ++row) times.push_back(curve.time(row, rate));
    if (const double found = misfit(times); found < best.second) best = {rate, found};
  }
  return best;
}

/// Predicts at the rate at which most rows are as the curve says.
void FaultSearch::refine(Curve& curve) const {
  constexpr double little = 1;
  const auto [rate, found] = best_of_two(curve);
  add_rate(curve, found < misfit(healthy_) - little ? rate : 1);
}

Hypothesis FaultSearch::healthy_hypothesis() const {
  return {{}, {}, prior_healthy, log_likelihood(healthy_), healthy_};
}

Hypothesis FaultSearch::late_hypothesis() const {
  Hypothesis late{{}, {{Fault::Kind::late, {}, 1, 0, false}}, prior_late, 0, {}};
  const double longest = *std::ranges::max_element(measured_);
  std::vector<double> each;
  double best = -std::numeric_limits<double>::infinity();
  constexpr double first = 1e-6, ratio = 1.15;
  for (double delay = first; delay < longest; delay *= ratio) {
    std::vector<double> times = healthy_;
    for (double& time : times) time += delay;
    each.push_back(log_likelihood(times));
    if (each.back() <= best) continue;
    best = each.back();
    late.faults.front().delay = delay;
    late.times = std::move(times);
  }
  late.log_evidence = each.empty() ? -std::numeric_limits<double>::infinity() : log_mean(each);
  if (each.empty()) late.times = healthy_;
  return late;
}

/// Seconds of each row by what curves say.
std::vector<double> FaultSearch::expected_times(const Hypothesis& hypothesis, std::span<const double> rates,
                                                Together rule) const {
  std::vector<double> times;
  for (std::size_t row = 0; row < measured_.size(); ++row) {
    double longest = 0, product = healthy_[row];
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const double alone = hypothesis.curves[i]->time(row, rates[i]);
      longest = std::max(longest, alone);
      product *= alone / healthy_[row];
    }
    times.push_back(rule == Together::slower ? longest : product);
  }
  return times;
}

Hypothesis FaultSearch::explain_by(std::vector<const Curve*> curves, double prior, Together rule) const {
  Hypothesis found{std::move(curves), {}, prior, 0, {}};
  constexpr double step = 0.01;
  std::vector<std::vector<double>> tried;
  for (const Curve* curve : found.curves) {
    found.faults.push_back(curve->fault);
    const bool is_gone = !has_rate(curve->fault);
    const bool is_pair = found.curves.size() > 1;
    tried.push_back(is_gone ? std::vector{curve->rates.back()} : is_pair ? rates_of_pairs() : rates_to_try(step));
  }
  std::vector<double> each;
  double best = -std::numeric_limits<double>::infinity();
  for_each_choice(tried, [&](std::span<const double> rates) {
    std::vector<double> times = expected_times(found, rates, rule);
    each.push_back(log_likelihood(times));
    if (each.back() <= best) return;
    best = each.back();
    for (std::size_t i = 0; i < rates.size(); ++i) found.faults[i].rate = rates[i];
    found.times = std::move(times);
  });
  found.log_evidence = log_mean(each);
  return found;
}

void FaultSearch::simulate_once(Hypothesis& hypothesis) const {
  const double over_rates = hypothesis.log_evidence - log_likelihood(hypothesis.times);
  auto times = predict_all(hypothesis.faults);
  if (!times) return;
  hypothesis.times = *std::move(times);
  hypothesis.log_evidence = log_likelihood(hypothesis.times) + over_rates;
}

void FaultSearch::improve_rates(std::span<Hypothesis> hypotheses, int rounds) const {
  run_parallel(hypotheses.size(), threads_, [&](std::size_t i) { improve_rates_of(hypotheses[i], rounds); });
}

void FaultSearch::improve_rates_of(Hypothesis& hypothesis, int rounds) const {
  constexpr double little = 0.3;  // Of a logarithm: no other rate says more.
  for (int round = 0; round < rounds; ++round) {
    std::vector<Fault> faults = faults_beside(hypothesis);
    if (faults == hypothesis.faults) return;
    auto times = predict_all(faults);
    const auto gained = [&] { return times ? log_likelihood(*times) - log_likelihood(hypothesis.times) : 0; };
    if (gained() <= 0 && hypothesis.faults.front().is_planned_around) {  // Beyond a step of its plan: halfway there.
      for (std::size_t i = 0; i < faults.size(); ++i) faults[i].rate = (faults[i].rate + hypothesis.faults[i].rate) / 2;
      times = predict_all(faults);
    }
    const double gain = gained();
    if (gain <= 0) return;
    hypothesis.faults = std::move(faults);
    hypothesis.times = *std::move(times);
    hypothesis.log_evidence += gain;
    if (gain < little) return;
  }
}

std::vector<Fault> FaultSearch::faults_beside(const Hypothesis& hypothesis) const {
  std::vector<double> at;
  std::vector<std::vector<double>> tried;
  for (const Fault& fault : hypothesis.faults) {
    at.push_back(fault.rate);
    std::vector<double>& rates = tried.emplace_back();
    const bool is_pair = hypothesis.faults.size() > 1;
    const double reach = is_pair ? 0.24 : 0.12, step = is_pair ? 0.03 : 0.005;
    const bool is_slow = fault.kind == Fault::Kind::slow;
    for (double move = is_slow ? -reach : 0; move <= (is_slow ? reach : 0); move += step) {
      rates.push_back(is_slow ? std::clamp(fault.rate * (1 + move), min_rate, max_rate) : fault.rate);
    }
  }
  const std::vector<double> expected = expected_times(hypothesis, at);
  std::vector<Fault> faults = hypothesis.faults;
  double best = log_likelihood(hypothesis.times);
  for_each_choice(tried, [&](std::span<const double> rates) {
    std::vector<double> times = expected_times(hypothesis, rates);
    for (std::size_t row = 0; row < times.size(); ++row) times[row] *= hypothesis.times[row] / expected[row];
    const double found = log_likelihood(times);
    if (found <= best) return;
    best = found;
    for (std::size_t i = 0; i < rates.size(); ++i) faults[i].rate = rates[i];
  });
  return faults;
}

void FaultSearch::simulate_anew(std::span<Hypothesis> hypotheses, int rounds) const {
  run_parallel(hypotheses.size(), threads_, [&](std::size_t i) { simulate_once(hypotheses[i]); });
  std::ranges::stable_sort(hypotheses, std::ranges::greater(), posterior);
  improve_rates(likely(hypotheses, hypotheses.size()), rounds);
  std::ranges::stable_sort(hypotheses, std::ranges::greater(), posterior);
}

std::vector<Hypothesis> FaultSearch::find_singles(std::size_t max_predicted) const {
  constexpr int max_rounds = 8;  // Most end before: another rate says no more.
  std::vector<Hypothesis> singles;
  for (const Curve& curve : curves_) singles.push_back(explain_by({&curve}, curve.prior));
  std::ranges::stable_sort(singles, std::ranges::greater(), posterior);
  simulate_anew(likely(singles, max_predicted), max_rounds);
  std::ranges::stable_sort(singles, std::ranges::greater(), posterior);
  std::vector<Hypothesis> all = {healthy_hypothesis(), late_hypothesis()};
  std::ranges::move(singles, std::back_inserter(all));
  return all;
}

}  // namespace espalier::diagnose
