#include "diagnose/pair_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/parallel.h"

namespace espalier::diagnose {
namespace {

constexpr std::array screened_rates = {0.85, 0.7, 0.6, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.14, 0.09};
constexpr std::size_t max_fitted = 32;   ///< Pairs whose likelihood is taken.
constexpr std::size_t max_improved = 8;  ///< Whose rates are predicted anew.
constexpr double prior_of_two = 0.07 / 0.4 / 0.4;

}  // namespace

PairSearch::Logarithms PairSearch::tabulate(const Curve& curve) const {
  Logarithms table;
  const auto add = [&](double rate) {
    std::vector<double>& rows = table.emplace_back();
    for (std::size_t row = 0; row < search_.measured().size(); ++row) rows.push_back(std::log(curve.time(row, rate)));
  };
  if (curve.fault.kind == Fault::Kind::gone) {
    add(curve.rates.back());
  } else {
    for (const double rate : screened_rates) add(rate);
  }
  return table;
}

/// Of the rates that fit best, by squares; a row that is far off says no more than one that is off.
double PairSearch::score_of(const Logarithms& one, const Logarithms& other) const {
  constexpr double off = 0.05, max_off = 16;  // What noise and the rule may leave; the square of how many times that.
  double best = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& first : one) {
    for (const std::vector<double>& second : other) {
      double sum = 0;
      for (std::size_t row = 0; row < first.size() && sum < best; ++row) {
        const double parted = (std::log(search_.measured()[row]) - std::max(first[row], second[row])) / off;
        sum += std::min(parted * parted, max_off);
      }
      best = std::min(best, sum);
    }
  }
  return -best / 2;
}

bool PairSearch::may_be_together(const Curve& one, const Curve& other) const {
  const auto is_known = [](const Curve& curve) { return curve.fault.is_planned_around; };
  if (is_known(one) != is_known(other)) return false;
  return one.fault_class != other.fault_class || classes_[one.fault_class].parts.size() > 1;
}

std::vector<PairSearch::Pair> PairSearch::screen() const {
  const std::span<const Curve> curves = search_.curves();
  std::vector<Logarithms> tables;
  for (const Curve& curve : curves) tables.push_back(tabulate(curve));
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t j = i; j < curves.size(); ++j) {
      if (!may_be_together(curves[i], curves[j])) continue;
      const double score = score_of(tables[i], tables[j]);
      pairs.push_back({&curves[i], &curves[j], score + std::log(curves[i].prior * curves[j].prior)});
    }
  }
  std::ranges::stable_sort(pairs, std::ranges::greater(), &Pair::score);
  if (pairs.size() > max_fitted) pairs.resize(max_fitted);
  return pairs;
}

std::vector<Hypothesis> PairSearch::places_of(const Hypothesis& pair) const {
  const std::size_t second = pair.curves[1]->fault_class;
  const std::vector<std::string>& parts = classes_[second].parts;
  const auto at = [&](const std::string& part, double share) {
    Hypothesis placed = pair;
    placed.faults[1].part = part;
    placed.prior *= share;
    return placed;
  };
  std::vector<Hypothesis> places;
  if (options_.classes_with) {
    for (const FaultClass& each : options_.classes_with(pair.faults[0])) {
      const std::string& part = each.parts.front();
      if (part == pair.faults[0].part || std::ranges::find(parts, part) == parts.end()) continue;
      places.push_back(at(part, static_cast<double>(each.parts.size()) / static_cast<double>(parts.size())));
    }
  }
  if (places.empty()) places.push_back(at(second == pair.curves[0]->fault_class ? parts[1] : parts[0], 1));
  std::ranges::stable_sort(places, std::ranges::greater(), &Hypothesis::prior);
  return places;
}

std::vector<Hypothesis> PairSearch::fit() const {
  const std::vector<Pair> screened = screen();
  std::vector<Hypothesis> fitted(screened.size());
  run_parallel(screened.size(), options_.threads, [&](std::size_t i) {
    const auto& [one, other, score] = screened[i];
    fitted[i] = search_.explain_by({one, other}, prior_of_two * one->prior * other->prior);
  });
  std::ranges::stable_sort(fitted, std::ranges::greater(), posterior);
  return fitted;
}

/// What is likeliest in one place, then in all.
std::vector<Hypothesis> PairSearch::place(std::vector<Hypothesis> fitted) const {
  const auto of_first = likely(fitted, options_.max_pairs);
  std::vector<std::vector<Hypothesis>> places(of_first.size());
  std::vector<Hypothesis> first;
  for (std::size_t i = 0; i < of_first.size(); ++i) {
    places[i] = places_of(of_first[i]);
    first.push_back(places[i].front());
    first.back().prior = of_first[i].prior;
  }
  search_.simulate_anew(first, 0);
  std::vector<Hypothesis> others;
  for (Hypothesis& each : likely(first, options_.max_pairs)) {
    const auto is_of = [&](const std::vector<Hypothesis>& of) { return of.front().curves == each.curves; };
    const std::span<const Hypothesis> all = *std::ranges::find_if(places, is_of);
    if (others.size() + all.size() > options_.max_pairs) break;
    each.prior = all.front().prior;
    others.insert(others.end(), all.begin() + 1, all.end());
  }
  search_.simulate_anew(others, 0);
  std::ranges::move(others, std::back_inserter(first));
  std::ranges::stable_sort(first, std::ranges::greater(), posterior);
  return first;
}

std::vector<Hypothesis> PairSearch::find() const {
  constexpr double noise = 0.025;  // Per row.
  const auto rows = static_cast<double>(search_.measured().size());
  if (search_.gap(search_.healthy()) < noise * noise * rows) return {};
  std::vector<Hypothesis> fitted = fit();
  if (options_.estimate) return fitted;
  std::vector<Hypothesis> placed = place(std::move(fitted));
  search_.improve_rates(likely(placed, max_improved), 3);
  return placed;
}

}  // namespace espalier::diagnose
