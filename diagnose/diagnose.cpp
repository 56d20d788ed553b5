#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/format_units.h"
#include "diagnose/fault_search.h"
#include "diagnose/late_beside.h"
#include "diagnose/pair_search.h"
#include "diagnose/places.h"

namespace espalier::diagnose {
namespace {

std::vector<double> logarithms_of(const std::vector<Hypothesis>& all) {
  std::vector<double> logarithms;
  for (const Hypothesis& each : all) logarithms.push_back(each.log_evidence + std::log(each.prior));
  return logarithms;
}

double log_evidence_of(const std::vector<Hypothesis>& all) {
  return log_mean(logarithms_of(all)) + std::log(static_cast<double>(all.size()));
}

/// The probability of each hypothesis; they sum to 1.
std::vector<double> posteriors_of(const std::vector<Hypothesis>& all) {
  std::vector<double> each = logarithms_of(all);
  const double sum = log_evidence_of(all);
  for (double& of : each) of = std::exp(of - sum);
  return each;
}

struct Place {
  const Evidence* evidence = nullptr;
  std::size_t point = 0;
};

Place place_of(std::span<const Evidence> evidence, std::size_t row) {
  for (const Evidence& each : evidence) {
    if (row < each.points.size()) return {&each, row};
    row -= each.points.size();
  }
  return {};
}

/// Where the healthy machine's prediction parts most from what was measured.
std::size_t worst_row(const FaultSearch& search) {
  std::size_t worst = 0;
  const auto parted = [&](std::size_t row) {
    return std::abs(std::log(search.measured()[row] / search.healthy()[row]));
  };
  for (std::size_t row = 1; row < search.measured().size(); ++row) {
    if (parted(row) > parted(worst)) worst = row;
  }
  return worst;
}

/// The median of measured over predicted.
double median_factor(const FaultSearch& search) {
  std::vector<double> factors;
  for (std::size_t row = 0; row < search.measured().size(); ++row) {
    factors.push_back(search.measured()[row] / search.healthy()[row]);
  }
  const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
  std::ranges::nth_element(factors, middle);
  return *middle;
}

std::string evidence_line(const FaultSearch& search, std::span<const Evidence> evidence, const Hypothesis& with) {
  std::size_t best = 0;  // Where it explains most.
  const auto explained = [&](std::size_t row) {
    const double measured = search.measured()[row];
    return std::abs(std::log(measured / search.healthy()[row])) - std::abs(std::log(measured / with.times[row]));
  };
  for (std::size_t row = 1; row < search.measured().size(); ++row) {
    if (explained(row) > explained(best)) best = row;
  }
  const Place place = place_of(evidence, best);
  const auto text = [](double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); };
  return fmt::format("{} of {}: measured {}, {} without and {} with it", place.evidence->question.collective,
                     format_size(place.evidence->points[place.point].size), text(search.measured()[best]),
                     text(search.healthy()[best]), text(with.times[best]));
}

/// Explanations whose likelihoods part by less, as logarithms, are told apart by no row: by what is likely beforehand.
constexpr double told_apart = 1;

/// One suspect for every class: all that speaks for it, as the kind and at the rate that fit best.
class Suspects {
 public:
  Suspects(const FaultSearch& search, std::span<const Evidence> evidence, std::span<const FaultClass> classes)
      : search_(search), evidence_(evidence), classes_(classes) {}

  /// Requires: a hypothesis that stays.
  void add(const Hypothesis& hypothesis, double probability) {
    if (hypothesis.faults.empty()) return;
    hypotheses_.push_back(&hypothesis);
    std::multiset<std::size_t> of;
    for (std::size_t i = 0; i < hypothesis.faults.size(); ++i) {
      if (!of.contains(class_of(hypothesis, i))) probabilities_[class_of(hypothesis, i)] += probability;
      of.insert(class_of(hypothesis, i));
    }
    Explanation& explanation = explanations_[of];
    explanation.probability += probability;
    if (explanation.best != nullptr && explanation.best_probability >= probability) return;
    explanation.best = &hypothesis;
    explanation.best_probability = probability;
  }

  /// The most probable one, then the others of the few that leave least unexplained, then the rest.
  [[nodiscard]] std::vector<Suspect> ranked(std::size_t most) const {
    std::vector<std::size_t> order;
    constexpr double min_shown = 0.005, min_of_few = 1e-4;  // Shown as one per cent.
    constexpr std::size_t few = 4;                          // Whoever asks for two faults sees what is next.
    for (const auto& [of, probability] : probabilities_) {
      if (probability >= min_of_few) order.push_back(of);
    }
    std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t of) { return probabilities_.at(of); });
    std::size_t shown = 0;
    while (shown < order.size() && (shown < few || probabilities_.at(order[shown]) >= min_shown)) ++shown;
    order.resize(shown);
    put_few_first(order);
    if (order.size() > most) order.resize(most);
    std::vector<Suspect> suspects;
    for (const std::size_t of : order) suspects.push_back(describe_class(of));
    return suspects;
  }

 private:
  /// Faults of the same classes: of any of their parts, at any rate.
  struct Explanation {
    double probability = 0;
    const Hypothesis* best = nullptr;
    double best_probability = 0;
  };

  /// What most likely is wrong if a part of this class is.
  [[nodiscard]] const Hypothesis& best_with(std::size_t fault_class) const {
    const Explanation* best = nullptr;
    for (const auto& [of, explanation] : explanations_) {
      if (!of.contains(fault_class)) continue;
      if (best == nullptr || explanation.probability > best->probability) best = &explanation;
    }
    return *best->best;
  }

  /// Of which fault of a hypothesis this is the class.
  [[nodiscard]] std::size_t number_in(const Hypothesis& of, std::size_t fault_class) const {
    return class_of(of, 0) == fault_class ? 0 : 1;
  }

  [[nodiscard]] Suspect describe_class(std::size_t fault_class) const {
    const Hypothesis& best = best_with(fault_class);
    const std::size_t number = number_in(best, fault_class);
    Suspect suspect;
    suspect.fault = best.faults[number];
    suspect.probability = probabilities_.at(fault_class);
    suspect.explains = std::clamp(1 - search_.gap(best.times) / search_.gap(search_.healthy()), 0.0, 1.0);
    suspect.evidence = evidence_line(search_, evidence_, best);
    if (best.faults.size() > 1) suspect.together_with = best.faults[1 - number];
    if (fault_class == classes_.size()) {
      suspect.what = "rank";
      return suspect;
    }
    suspect.what = classes_[fault_class].what;
    suspect.alike = classes_[fault_class].parts;
    if (!classes_[fault_class].counters.empty()) suspect.evidence += "; counters: " + classes_[fault_class].counters;
    std::ranges::iter_swap(suspect.alike.begin(), std::ranges::find(suspect.alike, suspect.fault.part));
    suspect.same_predictions = instead_of(best, number);
    return suspect;
  }

  /// How probable it is that nothing but these is at fault.
  [[nodiscard]] double held_by(std::span<const std::size_t> few) const {
    double sum = 0;
    for (const auto& [of, explanation] : explanations_) {
      const auto is_held = [&](std::size_t each) { return std::ranges::find(few, each) != few.end(); };
      if (std::ranges::all_of(of, is_held)) sum += explanation.probability;
    }
    return sum;
  }

  /// Who reads a list looks at its beginning: what is there together is what most likely holds all that is wrong, not
  /// several names for one fault and none for the other.
  void put_few_first(std::vector<std::size_t>& order) const {
    constexpr std::size_t few = 4, considered = 12;
    const std::size_t among = std::min(considered, order.size());
    if (among <= few) return;
    std::vector<std::size_t> best(order.begin(), order.begin() + few);
    double most = held_by(best);
    for (std::size_t b = 1; b < among; ++b) {
      for (std::size_t c = b + 1; c < among; ++c) {
        for (std::size_t d = c + 1; d < among; ++d) {
          const std::array tried = {order[0], order[b], order[c], order[d]};
          const double held = held_by(tried);
          if (held <= most) continue;
          most = held;
          best.assign(tried.begin(), tried.end());
        }
      }
    }
    std::ranges::stable_partition(order, [&](std::size_t of) { return std::ranges::find(best, of) != best.end(); });
  }

  /// That of late ranks is none of the machine's.
  [[nodiscard]] std::size_t class_of(const Hypothesis& hypothesis, std::size_t number) const {
    return number < hypothesis.curves.size() ? hypothesis.curves[number]->fault_class : classes_.size();
  }

  /// The faults of one hypothesis that are of no class of the other's.
  [[nodiscard]] std::vector<std::size_t> not_in(const Hypothesis& other, const Hypothesis& of) const {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < of.faults.size(); ++i) {
      bool is_there = false;
      for (std::size_t k = 0; k < other.faults.size(); ++k) is_there |= class_of(other, k) == class_of(of, i);
      if (!is_there) numbers.push_back(i);
    }
    return numbers;
  }

  /// The parts, as they are named where they are suspects, whose faults in the place of this one or of both make what
  /// was measured as likely.
  [[nodiscard]] std::vector<std::string> instead_of(const Hypothesis& best, std::size_t number) const {
    const double least = search_.log_likelihood(best.times) - told_apart;
    std::set<std::size_t> instead;
    for (const Hypothesis* other : hypotheses_) {
      if (other->faults.size() > best.faults.size() || search_.log_likelihood(other->times) < least) continue;
      const std::vector<std::size_t> left_out = not_in(*other, best);
      if (std::ranges::find(left_out, number) == left_out.end()) continue;
      if (other->faults.size() == best.faults.size() && left_out.size() > 1) continue;  // Nothing in common.
      for (const std::size_t i : not_in(best, *other)) instead.insert(class_of(*other, i));
    }
    std::vector<std::string> parts;
    for (const std::size_t of : instead) {
      const Hypothesis& with = best_with(of);
      if (of < classes_.size()) parts.push_back(with.faults[number_in(with, of)].part);
    }
    return parts;
  }

  const FaultSearch& search_;
  std::span<const Evidence> evidence_;
  std::span<const FaultClass> classes_;
  std::vector<const Hypothesis*> hypotheses_;
  std::map<std::size_t, double> probabilities_;                     ///< By class: that it is at fault.
  std::map<std::multiset<std::size_t>, Explanation> explanations_;  ///< By all classes that are at fault.
};

/// Predicts the likeliest estimates, and where these leave more than noise what the software knows of.
void look_for_known(FaultSearch& search, const DiagnoseOptions& options, std::vector<Hypothesis>& all) {
  constexpr double noise = 0.03;  // Per row.
  const double explained = noise * noise * static_cast<double>(search.measured().size());
  const std::size_t max_anew = options.max_known / 2;
  all = search.find_singles(max_anew);
  for (const Fault::Kind kind : {Fault::Kind::gone, Fault::Kind::slow}) {
    const Hypothesis& best = *std::ranges::max_element(all, {}, posterior);
    if (options.max_known == 0 || search.gap(best.times) < explained) return;
    if (options.on_step)
      options.on_step(kind == Fault::Kind::gone ? "parts that are gone" : "slow parts that are known");
    search.add_known(kind, options.max_known);
    all = search.find_singles(max_anew);
  }
}

std::vector<std::string> untouched_kinds(const FaultSearch& search, std::span<const FaultClass> classes) {
  std::set<std::size_t> touched;
  for (const Curve& curve : search.curves()) touched.insert(curve.fault_class);
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!touched.contains(i) && !classes[i].is_setting && std::ranges::find(kinds, classes[i].what) == kinds.end())
      kinds.push_back(classes[i].what);
  }
  return kinds;
}

}  // namespace

Result<Diagnosis> diagnose(std::span<const Evidence> evidence, std::span<const FaultClass> classes,
                           const Predict& predict, const DiagnoseOptions& options) {
  FaultSearch search(evidence, classes, predict, options.estimate, options.threads, options.max_dense);
  if (options.on_step) options.on_step("the healthy machine");
  if (const auto started = search.start(); !started) return tl::unexpected(started.error());
  search.add_classes(options.on_step);
  constexpr std::size_t max_anew = 6;
  std::vector<Hypothesis> all = search.find_singles(options.estimate ? 0 : max_anew);
  constexpr double surely_healthy = 0.9;  // As far as one fault goes.
  if (posteriors_of(all).front() < surely_healthy) {
    if (options.estimate) {
      look_for_known(search, options, all);
    } else {
      search.refine_planned_around();
    }
    if (options.on_step) options.on_step("pairs");
    if (!options.estimate) {
      constexpr std::ptrdiff_t not_single = 2;  // The healthy machine and late ranks.
      std::vector<Hypothesis> singles(all.begin() + not_single, all.end());
      all.resize(not_single);
      const auto predict_all = [&](std::span<Hypothesis> each) { search.simulate_anew(each, 1); };
      std::ranges::move(in_every_place(classes, std::move(singles), options.max_places, predict_all),
                        std::back_inserter(all));
    }
    std::ranges::move(find_late_beside(search, classes, options), std::back_inserter(all));
    std::ranges::move(PairSearch(search, classes, options).find(), std::back_inserter(all));
  }
  const std::vector<double> posteriors = posteriors_of(all);

  Diagnosis diagnosis;
  diagnosis.probability_healthy = posteriors.front();
  diagnosis.log_evidence = log_evidence_of(all);
  const std::size_t worst = worst_row(search);
  diagnosis.factor = search.measured()[worst] / search.healthy()[worst];
  const Place place = place_of(evidence, worst);
  diagnosis.worst = place.evidence;
  diagnosis.worst_point = place.point;
  diagnosis.typical_factor = median_factor(search);
  diagnosis.untouched = untouched_kinds(search, classes);
  Suspects suspects(search, evidence, classes);
  for (std::size_t i = 1; i < all.size(); ++i) suspects.add(all[i], posteriors[i]);
  std::vector<Suspect> ranked = suspects.ranked(options.max_suspects);
  // What no fault explains is what the model lacks, however unlikely that is.
  constexpr double min_explained = 0.25, much_faster = 0.85;
  const bool is_at_fault =
      1 - diagnosis.probability_healthy >= options.alarm && !ranked.empty() && ranked.front().explains >= min_explained;
  if (is_at_fault) {
    diagnosis.verdict = Diagnosis::Verdict::slower;
    diagnosis.suspects = std::move(ranked);
  } else if (diagnosis.typical_factor < much_faster) {
    diagnosis.verdict = Diagnosis::Verdict::faster;
  }
  return diagnosis;
}

}  // namespace espalier::diagnose
