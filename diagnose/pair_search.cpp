#include "diagnose/pair_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>

#include "base/parallel.h"

namespace espalier::diagnose {
namespace {

constexpr std::array screened_rates = {0.85, 0.7, 0.6, 0.5, 0.42, 0.35, 0.3, 0.25, 0.2, 0.14, 0.09};
constexpr std::size_t max_fitted = 48;                 ///< Pairs whose likelihood is taken.
constexpr std::size_t max_improved = 8;                ///< Whose rates are predicted anew.
constexpr std::size_t max_firsts = 8, max_beside = 6;  ///< Faults to begin with, and what is tried beside each.
constexpr std::size_t max_kept = 6;                    ///< Faults of pairs that are kept.
constexpr std::size_t max_placed = 6;                  ///< Pairs found whose second part is tried in other places.
constexpr std::size_t max_places = 4;                  ///< Of one pair.
constexpr std::size_t max_tried_of_class = 4;          ///< Parts that are tried beside a first fault.
constexpr int max_rounds = 3;                          ///< Of putting others in the place of one of two.
constexpr double prior_of_two = 0.07 / 0.4 / 0.4;

/// At which a fault of this curve is tried.
std::span<const double> rates_of(const Curve& curve) {
  if (!has_rate(curve.fault)) return std::span(&curve.rates.back(), 1);
  return screened_rates;
}

/// A slow one, one that is gone, a slow one: what is planned around a part that is gone is alike to nothing else.
template <class First>
std::vector<First> in_turn(const std::vector<First>& firsts) {
  std::vector<First> gone, others, all;
  for (const First& first : firsts) (first.fault.kind == Fault::Kind::gone ? gone : others).push_back(first);
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    if (i < others.size()) all.push_back(others[i]);
    if (i < gone.size()) all.push_back(gone[i]);
  }
  return all;
}

/// Of a second fault beside a first one. Plans change in steps: one rate does not tell of all others.
std::span<const double> response_rates(const Curve& curve) {
  static constexpr std::array slow = {0.7, 0.4};
  return std::span(slow).first(has_rate(curve.fault) ? slow.size() : 1);
}

}  // namespace

PairSearch::PairSearch(const FaultSearch& search, std::span<const FaultClass> classes, const DiagnoseOptions& options)
    : search_(search), classes_(classes), options_(options) {
  for (const Curve& curve : search.curves()) {
    const bool is_slow = curve.fault.kind == Fault::Kind::slow;
    if (is_slow && curve.fault.is_planned_around) planned_around_.insert({curve.fault_class, curve.fault.part});
  }
}

PairSearch::Logarithms PairSearch::tabulate(const Curve& curve) const {
  Logarithms table;
  for (const double rate : rates_of(curve)) {
    std::vector<double>& rows = table.emplace_back();
    for (std::size_t row = 0; row < search_.measured().size(); ++row) rows.push_back(std::log(curve.time(row, rate)));
  }
  return table;
}

/// Of the rates that fit best, by squares; a row that is far off says no more than one that is off.
double PairSearch::score_of(const Logarithms& one, const Logarithms& other, Together rule) const {
  constexpr double off = 0.05, max_off = 16;  // What noise and the rule may leave; the square of how many times that.
  double best = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& first : one) {
    for (const std::vector<double>& second : other) {
      double sum = 0;
      for (std::size_t row = 0; row < first.size() && sum < best; ++row) {
        const double both = rule == Together::slower ? std::max(first[row], second[row])
                                                     : first[row] + second[row] - std::log(search_.healthy()[row]);
        const double parted = (std::log(search_.measured()[row]) - both) / off;
        sum += std::min(parted * parted, max_off);
      }
      best = std::min(best, sum);
    }
  }
  return -best / 2;
}

/// What software knows of both or of neither; of what shows alike in either way it matters not. A setting is looked for
/// by itself.
bool PairSearch::may_be_together(const Curve& one, const Curve& other) const {
  if (classes_[one.fault_class].is_setting || classes_[other.fault_class].is_setting) return false;
  if (one.fault_class == other.fault_class && classes_[one.fault_class].parts.size() == 1) return false;
  if (one.fault.is_planned_around == other.fault.is_planned_around) return true;
  const Curve& unknown = one.fault.is_planned_around ? other : one;
  return !planned_around_.contains({unknown.fault_class, unknown.fault.part});
}

std::vector<PairSearch::Pair> PairSearch::screen() const {
  const std::span<const Curve> curves = search_.curves();
  std::vector<Logarithms> tables;
  for (const Curve& curve : curves) tables.push_back(tabulate(curve));
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::size_t j = i; j < curves.size(); ++j) {
      if (!may_be_together(curves[i], curves[j])) continue;
      const double prior = std::log(curves[i].prior * curves[j].prior);
      for (const Together rule : {Together::slower, Together::product}) {
        pairs.push_back({&curves[i], &curves[j], score_of(tables[i], tables[j], rule) + prior, rule});
      }
    }
  }
  std::ranges::stable_sort(pairs, std::ranges::greater(), &Pair::score);
  if (pairs.size() > max_fitted) pairs.resize(max_fitted);
  return pairs;
}

const std::vector<FaultClass>& PairSearch::classes_beside(const Fault& fault) const {
  const auto known = classes_beside_.find(fault.part);
  if (known != classes_beside_.end()) return known->second;
  std::vector<FaultClass> found;
  if (options_.classes_with) found = options_.classes_with(fault);
  return classes_beside_.emplace(fault.part, std::move(found)).first->second;
}

std::vector<Hypothesis> PairSearch::places_of(const Hypothesis& pair, std::size_t max) const {
  const std::vector<std::string>& parts = classes_[pair.curves[1]->fault_class].parts;
  std::vector<Hypothesis> places;
  for (const FaultClass& each : classes_beside(pair.faults[0])) {
    const auto is_it = [&](const std::string& part) { return part == pair.faults[1].part; };
    const bool is_here = std::ranges::any_of(each.parts, is_it);
    const std::string& part = is_here ? pair.faults[1].part : each.parts.front();
    if (part == pair.faults[0].part || std::ranges::find(parts, part) == parts.end()) continue;
    Hypothesis& placed = places.emplace_back(pair);
    placed.faults[1].part = part;
    placed.prior *= static_cast<double>(each.parts.size()) / static_cast<double>(parts.size());
  }
  std::ranges::stable_sort(places, std::ranges::greater(), &Hypothesis::prior);
  if (places.size() > max) places.resize(max);
  if (places.empty()) places.push_back(pair);
  return places;
}

std::vector<Hypothesis> PairSearch::two_gone() const {
  std::map<std::size_t, const Curve*> of_class;  // Any part stands for its class: its places are tried.
  for (const Curve& curve : search_.curves()) {
    if (curve.fault.kind == Fault::Kind::gone) of_class.emplace(curve.fault_class, &curve);
  }
  std::vector<Hypothesis> all;
  for (auto one = of_class.begin(); one != of_class.end(); ++one) {
    for (auto other = one; other != of_class.end(); ++other) {
      const Curve &first = *one->second, &second = *other->second;
      if (!may_be_together(first, second)) continue;
      const Hypothesis pair{{&first, &second},
                            {first.fault, second.fault},
                            prior_of_two * first.prior * second.prior,
                            search_.log_likelihood(search_.healthy()),
                            search_.healthy()};
      std::ranges::move(places_of(pair, options_.max_pairs), std::back_inserter(all));
    }
  }
  return all;
}

/// The best of each two kinds of faults, so many of these at most, in all their places.
std::vector<Hypothesis> PairSearch::place(std::vector<Hypothesis> pairs, std::size_t max_kinds) const {
  using Kinds = std::pair<std::set<std::pair<std::size_t, Fault::Kind>>, bool>;
  std::ranges::stable_sort(pairs, std::ranges::greater(), posterior);
  std::set<Kinds> seen;
  std::vector<Hypothesis> all;
  for (const Hypothesis& pair : pairs) {
    if (seen.size() == max_kinds) break;
    if (!needs_both(pair)) continue;
    Kinds kinds;
    kinds.second = pair.faults[0].is_planned_around;
    for (const Curve* curve : pair.curves) kinds.first.emplace(curve->fault_class, curve->fault.kind);
    if (seen.insert(kinds).second) std::ranges::move(places_of(pair, max_places), std::back_inserter(all));
  }
  return all;
}

void PairSearch::set_known(Hypothesis& pair) const {
  const bool is_known = std::ranges::any_of(pair.faults, &Fault::is_planned_around);
  for (Fault& fault : pair.faults) fault.is_planned_around = is_known;
  Fault &one = pair.faults[0], &other = pair.faults[1];
  if (one.part != other.part) return;
  const std::vector<std::string>& parts = classes_[pair.curves[1]->fault_class].parts;
  const auto another = std::ranges::find_if(parts, [&](const std::string& part) { return part != one.part; });
  if (another != parts.end()) other.part = *another;
}

std::vector<Hypothesis> PairSearch::fit() const {
  const std::vector<Pair> screened = screen();
  std::vector<Hypothesis> fitted(screened.size());
  run_parallel(screened.size(), options_.threads, [&](std::size_t i) {
    const auto& [one, other, score, rule] = screened[i];
    fitted[i] = search_.explain_by({one, other}, prior_of_two * one->prior * other->prior, rule);
    set_known(fitted[i]);
  });
  std::ranges::stable_sort(fitted, std::ranges::greater(), posterior);
  return fitted;
}

std::vector<Hypothesis> PairSearch::beside(const Curve& kept, const Fault& fault, std::span<const double> alone,
                                           std::span<const double> ratios) const {
  enum class Rule : std::uint8_t { slower, slower_by_ratios, product };
  const double over_kept = !has_rate(fault) ? 0 : -std::log(static_cast<double>(screened_rates.size()));
  std::vector<Hypothesis> found;
  for (const Curve& curve : search_.curves()) {
    if (&curve == &kept || !may_be_together(kept, curve)) continue;
    Hypothesis other{{&kept, &curve}, {fault, curve.fault}, prior_of_two * kept.prior * curve.prior, 0, {}};
    std::vector<double> each;
    double best = -std::numeric_limits<double>::infinity();
    for (const double rate : rates_of(curve)) {
      for (const Rule rule : {Rule::slower, Rule::slower_by_ratios, Rule::product}) {
        if (rule == Rule::slower_by_ratios && ratios.empty()) continue;
        std::vector<double> times;
        for (std::size_t row = 0; row < alone.size(); ++row) {
          const double other_alone = curve.time(row, rate);
          const double longer = rule == Rule::product ? std::min(alone[row], other_alone) / search_.healthy()[row]
                                : rule == Rule::slower_by_ratios ? ratios[row]
                                                                 : 1;
          times.push_back(std::max(alone[row], other_alone) * longer);
        }
        each.push_back(search_.log_likelihood(times));
        if (each.back() <= best) continue;
        best = each.back();
        other.faults[1].rate = rate;
        other.times = std::move(times);
      }
    }
    other.log_evidence = log_mean(each) + over_kept;
    set_known(other);
    found.push_back(std::move(other));
  }
  return found;
}

std::vector<PairSearch::First> PairSearch::likeliest_firsts(std::size_t max) const {
  std::vector<First> firsts;
  for (const Curve& curve : search_.curves()) {
    if (classes_[curve.fault_class].is_setting) continue;
    const auto [rate, misfit] = search_.best_of_two(curve);
    First& first = firsts.emplace_back(First{&curve, curve.fault, std::log(curve.prior) - misfit / 2});
    first.fault.rate = rate;
  }
  std::ranges::stable_sort(firsts, std::ranges::greater(), &First::score);
  if (firsts.size() > max) firsts.resize(max);
  return firsts;
}

std::vector<Hypothesis> PairSearch::begin_with_one() const {
  std::vector<Hypothesis> found;
  for (const First& first : likeliest_firsts(max_firsts)) {
    std::vector<double> alone;
    for (std::size_t row = 0; row < search_.measured().size(); ++row) {
      alone.push_back(first.curve->time(row, first.fault.rate));
    }
    std::vector<Hypothesis> with = beside(*first.curve, first.fault, alone, {});
    std::ranges::stable_sort(with, std::ranges::greater(), posterior);
    if (with.size() > max_beside) with.resize(max_beside);
    std::ranges::move(with, std::back_inserter(found));
  }
  return found;
}

/// The second fault of a part, as it is beside the first: predicted at some rates, straight between them.
std::optional<Hypothesis> PairSearch::respond(const First& first, const Curve& curve, const std::string& part,
                                              const std::vector<double>& alone) const {
  Hypothesis pair{{first.curve, &curve}, {first.fault, curve.fault}, prior_of_two * first.curve->prior, 0, {}};
  pair.faults[1].part = part;
  set_known(pair);
  Curve response{curve.fault_class, pair.faults[1], {1}, {alone}, curve.prior};
  for (const double rate : response_rates(curve)) {
    pair.faults[1].rate = rate;
    auto both = search_.predict_all(pair.faults);
    if (!both) return std::nullopt;
    response.rates.push_back(rate);
    response.times.push_back(*std::move(both));
  }
  Hypothesis second = search_.explain_by({&response}, curve.prior);
  const double over_first = !has_rate(first.fault) ? 0 : -std::log(static_cast<double>(screened_rates.size()));
  pair.faults[1].rate = second.faults[0].rate;
  pair.log_evidence = second.log_evidence + over_first;
  pair.times = std::move(second.times);
  return pair;
}

/// The likeliest first faults, each with every other one as it is beside it: what a plan makes of both follows from
/// neither alone.
std::vector<Hypothesis> PairSearch::respond_to_firsts() const {
  struct Asked {
    First first;
    const Curve* curve;
    std::string part;
    double share;
  };
  std::vector<Asked> asked;
  std::size_t predictions = 0;
  std::map<std::string, std::vector<double>> alone;
  std::set<std::pair<std::size_t, Fault::Kind>> used;
  for (const First& first : in_turn(likeliest_firsts(search_.curves().size()))) {
    if (predictions >= options_.max_responses) break;
    if (!used.emplace(first.curve->fault_class, first.fault.kind).second) continue;
    const auto times = search_.predict_all(std::span(&first.fault, 1));
    if (!times) continue;
    alone.emplace(describe(first.fault), *times);
    for (const FaultClass& each : classes_beside(first.fault)) {
      // Plans use what a symmetry makes the same unlike.
      const std::size_t count = std::min(max_tried_of_class, each.parts.size());
      for (std::size_t i = 0; i < count; ++i) {
        const std::string& part = each.parts[i * each.parts.size() / count];
        if (part == first.fault.part) continue;
        for (const Fault::Kind kind : {Fault::Kind::slow, Fault::Kind::gone}) {
          if (kind == Fault::Kind::gone && first.fault.kind != kind) continue;  // The other way round it is tried.
          const Curve* const curve = curve_of(part, {kind, part, 1, 0, first.fault.is_planned_around});
          if (curve == nullptr) continue;
          const double all = static_cast<double>(classes_[curve->fault_class].parts.size() * count);
          asked.push_back({first, curve, part, static_cast<double>(each.parts.size()) / all});
          predictions += response_rates(*curve).size();
        }
      }
    }
  }
  std::vector<std::optional<Hypothesis>> responses(asked.size());
  run_parallel(asked.size(), options_.threads, [&](std::size_t i) {
    const Asked& of = asked[i];
    responses[i] = respond(of.first, *of.curve, of.part, alone.at(describe(of.first.fault)));
    if (responses[i]) responses[i]->prior *= of.curve->prior * of.share;
  });
  std::vector<Hypothesis> found;
  for (std::optional<Hypothesis>& each : responses) {
    if (each) found.push_back(*std::move(each));
  }
  return found;
}

/// What else may be there instead of one of these faults, the other kept where it is.
std::vector<Hypothesis> PairSearch::instead(const Hypothesis& of, std::size_t kept) const {
  const auto alone = search_.predict_all(std::span(&of.faults[kept], 1));
  if (!alone) return {};
  const double at = of.faults[1 - kept].rate;
  std::vector<double> ratios;
  for (std::size_t row = 0; row < alone->size(); ++row) {
    ratios.push_back(of.times[row] / std::max((*alone)[row], of.curves[1 - kept]->time(row, at)));
  }
  return beside(*of.curves[kept], of.faults[kept], *alone, ratios);
}

/// Whether neither fault explains as much alone.
bool PairSearch::needs_both(const Hypothesis& pair) const {
  constexpr double little = 1;
  return std::ranges::all_of(pair.curves, [&](const Curve* curve) {
    return pair.log_evidence > alone_.at(static_cast<std::size_t>(curve - search_.curves().data())) + little;
  });
}

/// What may be there instead of either fault of the likeliest pairs.
std::vector<Hypothesis> PairSearch::substitutes(std::span<const Hypothesis> found) const {
  std::set<const Curve*> used;
  std::vector<std::pair<const Hypothesis*, std::size_t>> kept;
  for (const Hypothesis& each : found) {
    if (!needs_both(each)) continue;
    for (const std::size_t i : {0U, 1U}) {
      if (kept.size() < max_kept && used.insert(each.curves[i]).second) kept.emplace_back(&each, i);
    }
  }
  std::vector<std::vector<Hypothesis>> of_each(kept.size());
  run_parallel(kept.size(), options_.threads,
               [&](std::size_t i) { of_each[i] = instead(*kept[i].first, kept[i].second); });
  std::vector<Hypothesis> all;
  for (std::vector<Hypothesis>& each : of_each) std::ranges::move(each, std::back_inserter(all));
  return all;
}

/// The curve of a part's class for such a fault, of the part itself where there is one.
const Curve* PairSearch::curve_of(const std::string& part, const Fault& like) const {
  const Curve* found = nullptr;
  for (const Curve& curve : search_.curves()) {
    const std::vector<std::string>& parts = classes_[curve.fault_class].parts;
    const bool is_like = curve.fault.kind == like.kind;
    if (!is_like || std::ranges::find(parts, part) == parts.end()) continue;
    if (curve.fault.part == part) return &curve;
    if (found == nullptr) found = &curve;
  }
  return found;
}

/// The likeliest pairs with what meets a part in its place, as slow: what slows a GPU down slows its cables.
std::vector<Hypothesis> PairSearch::with_neighbours() const {
  std::vector<Hypothesis> all;
  if (!options_.neighbours) return all;
  for (const Hypothesis& pair : std::span(found_).first(std::min(max_placed, found_.size()))) {
    if (!needs_both(pair)) continue;
    for (const std::size_t i : {0U, 1U}) {
      for (const std::string& part : options_.neighbours(pair.faults[i].part)) {
        const Curve* const curve = curve_of(part, pair.faults[i]);
        if (curve == nullptr || part == pair.faults[1 - i].part) continue;
        Hypothesis& other = all.emplace_back(pair);
        other.prior *= curve->prior / pair.curves[i]->prior;
        other.curves[i] = curve;
        other.faults[i].part = part;
      }
    }
  }
  return all;
}

std::vector<Hypothesis> PairSearch::untried(std::vector<Hypothesis> pairs, std::size_t max) {
  std::ranges::stable_sort(pairs, std::ranges::greater(), posterior);
  std::erase_if(pairs, [&, used = std::size_t{0}](const Hypothesis& pair) mutable {
    if (used == max) return true;
    Key key;
    key.second = pair.faults[0].is_planned_around;
    for (const Fault& fault : pair.faults) key.first.emplace(fault.part, fault.kind);
    if (!tried_.insert(key).second) return true;
    ++used;
    return false;
  });
  return pairs;
}

void PairSearch::try_out(std::vector<Hypothesis> pairs, std::size_t max) {
  std::vector<Hypothesis> others = untried(std::move(pairs), max);
  search_.simulate_anew(others, 1);
  std::ranges::move(others, std::back_inserter(found_));
  std::ranges::stable_sort(found_, std::ranges::greater(), posterior);
}

std::vector<Hypothesis> PairSearch::find() {
  constexpr double noise = 0.025;  // Per row.
  const auto rows = static_cast<double>(search_.measured().size());
  if (search_.gap(search_.healthy()) < noise * noise * rows) return {};
  std::vector<Hypothesis> begun = fit();
  if (options_.estimate) return begun;
  for (const Curve& curve : search_.curves()) alone_.push_back(search_.explain_by({&curve}, curve.prior).log_evidence);
  std::ranges::move(begin_with_one(), std::back_inserter(begun));
  try_out(place(begun, options_.max_pairs / 2), 2 * options_.max_pairs);
  try_out(std::move(begun), options_.max_pairs / 2);
  try_out(respond_to_firsts(), options_.max_pairs);
  for (int round = 0; round < max_rounds && !found_.empty(); ++round) {
    const double before = posterior(found_.front());
    try_out(substitutes(found_), options_.max_pairs / 2);
    constexpr double little = 0.5;
    if (posterior(found_.front()) < before + little) break;
  }
  try_out(place(found_, max_placed), options_.max_pairs);
  try_out(with_neighbours(), options_.max_pairs / 2);
  constexpr double explained = 0.03;  // Per row.
  const bool is_explained = !found_.empty() && search_.gap(found_.front().times) < explained * explained * rows;
  if (!is_explained) try_out(two_gone(), 2 * options_.max_pairs);
  search_.improve_rates(likely(found_, max_improved), 3);
  return found_;
}

}  // namespace espalier::diagnose
