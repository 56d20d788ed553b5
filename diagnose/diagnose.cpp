#include "diagnose/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "base/format_units.h"
#include "diagnose/fault_search.h"
#include "diagnose/pair_search.h"

namespace espalier::diagnose {
namespace {

/// The probability of each hypothesis; they sum to 1.
std::vector<double> posteriors_of(const std::vector<Hypothesis>& all) {
  std::vector<double> logarithms;
  for (const Hypothesis& each : all) logarithms.push_back(each.log_evidence + std::log(each.prior));
  const double sum = log_mean(logarithms) + std::log(static_cast<double>(all.size()));
  for (double& each : logarithms) each = std::exp(each - sum);
  return logarithms;
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

/// Times that part by less say nothing about which of two explanations is right.
constexpr double told_apart = 0.01;

/// One suspect for every class and kind of fault: all that speaks for it, at the rate that fits best.
class Suspects {
 public:
  Suspects(const FaultSearch& search, std::span<const Evidence> evidence, std::span<const FaultClass> classes)
      : search_(search), evidence_(evidence), classes_(classes) {}

  /// Requires: a hypothesis that stays.
  void add(const Hypothesis& hypothesis, double probability) {
    if (hypothesis.faults.empty()) return;
    hypotheses_.push_back(&hypothesis);
    for (std::size_t i = 0; i < hypothesis.faults.size(); ++i) {
      Entry& entry = entries_[{class_of(hypothesis, i), hypothesis.faults[i].kind}];
      const bool is_second = i > 0 && class_of(hypothesis, 0) == class_of(hypothesis, i) &&
                             hypothesis.faults[0].kind == hypothesis.faults[i].kind;
      if (is_second) continue;
      entry.probability += probability;
      if (entry.best != nullptr && entry.best_probability >= probability) continue;
      entry.best = &hypothesis;
      entry.best_probability = probability;
      entry.number = i;
    }
  }

  [[nodiscard]] std::vector<Suspect> ranked(std::size_t most) const {
    std::vector<Suspect> suspects;
    for (const auto& [key, entry] : entries_) suspects.push_back(describe_entry(key.first, entry));
    std::ranges::stable_sort(suspects, std::ranges::greater(), &Suspect::probability);
    constexpr double least = 0.005;  // Shown as one per cent.
    std::erase_if(suspects, [](const Suspect& suspect) { return suspect.probability < least; });
    if (suspects.size() > most) suspects.resize(most);
    return suspects;
  }

 private:
  struct Entry {
    const Hypothesis* best = nullptr;
    double best_probability = 0;
    double probability = 0;
    std::size_t number = 0;  ///< Of the fault in it.
  };

  [[nodiscard]] Suspect describe_entry(std::size_t fault_class, const Entry& entry) const {
    const Hypothesis& best = *entry.best;
    Suspect suspect;
    suspect.fault = best.faults[entry.number];
    suspect.probability = entry.probability;
    suspect.explains = std::clamp(1 - search_.gap(best.times) / search_.gap(search_.healthy()), 0.0, 1.0);
    suspect.evidence = evidence_line(search_, evidence_, best);
    if (best.faults.size() > 1) suspect.together_with = best.faults[1 - entry.number];
    if (fault_class == classes_.size()) {
      suspect.what = "rank";
      return suspect;
    }
    suspect.what = classes_[fault_class].what;
    suspect.alike = classes_[fault_class].parts;
    std::ranges::iter_swap(suspect.alike.begin(), std::ranges::find(suspect.alike, suspect.fault.part));
    suspect.same_predictions = instead_of(best, entry.number);
    return suspect;
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

  /// The parts whose faults in the place of this one, or two of them in the place of all, would measure the same.
  [[nodiscard]] std::vector<std::string> instead_of(const Hypothesis& best, std::size_t number) const {
    std::vector<std::string> parts;
    for (const Hypothesis* other : hypotheses_) {
      if (other == &best || !are_within(other->times, best.times, told_apart)) continue;
      const std::vector<std::size_t> left_out = not_in(*other, best), added = not_in(best, *other);
      if (std::ranges::find(left_out, number) == left_out.end()) continue;
      if (other->faults.size() == best.faults.size() && left_out.size() > 1) continue;  // Nothing in common.
      for (const std::size_t i : added) {
        const std::string& part = other->faults[i].part;
        if (!part.empty() && std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
      }
    }
    return parts;
  }

  const FaultSearch& search_;
  std::span<const Evidence> evidence_;
  std::span<const FaultClass> classes_;
  std::vector<const Hypothesis*> hypotheses_;
  std::map<std::pair<std::size_t, Fault::Kind>, Entry> entries_;
};

std::vector<std::string> untouched_kinds(const FaultSearch& search, std::span<const FaultClass> classes) {
  std::set<std::size_t> touched;
  for (const Curve& curve : search.curves()) touched.insert(curve.fault_class);
  std::vector<std::string> kinds;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (!touched.contains(i) && std::ranges::find(kinds, classes[i].what) == kinds.end())
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
  std::vector<Hypothesis> all = search.find_singles();
  constexpr double surely_healthy = 0.9;  // As far as one fault goes.
  if (posteriors_of(all).front() < surely_healthy) {
    if (options.on_step) options.on_step("pairs");
    search.refine_planned_around();
    std::ranges::move(PairSearch(search, classes, options).find(), std::back_inserter(all));
  }
  const std::vector<double> posteriors = posteriors_of(all);

  Diagnosis diagnosis;
  diagnosis.probability_healthy = posteriors.front();
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
