#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>

#include "base/parallel.h"
#include "diagnose/fault_search.h"

namespace espalier::diagnose {

Result<std::vector<double>> FaultSearch::predict_all(std::span<const Fault> faults) const {
  const std::vector<Fault> key(faults.begin(), faults.end());
  {
    const std::scoped_lock lock(predicted_mutex_);
    const auto known = predicted_.find(key);
    if (known != predicted_.end()) return known->second;
  }
  auto times = ask_all(predict_, faults);
  const std::scoped_lock lock(predicted_mutex_);
  predicted_.emplace(key, times);
  return times;
}

std::optional<std::vector<double>> FaultSearch::largest_with(const Fault& fault) const {
  std::vector<double> times;
  for (const Evidence& each : evidence_) {
    const auto time = predict_(each.question, std::span(&fault, 1), std::span(&each.points.back().size, 1));
    if (!time) return std::nullopt;
    times.push_back(time->front());
  }
  return times;
}

/// Whether the largest row of every series is about what it takes with this fault.
bool FaultSearch::is_near_largest(const Fault& fault) const {
  constexpr double off = 0.2;
  for (const Evidence& each : evidence_) {
    const Point& largest = each.points.back();
    const auto time = predict_(each.question, std::span(&fault, 1), std::span(&largest.size, 1));
    if (!time || std::abs(time->front() / largest.seconds - 1) > off) return false;
  }
  return true;
}

std::optional<Curve> FaultSearch::known_of(std::size_t number, Fault::Kind kind) const {
  const FaultClass& of = classes_[number];
  const std::string& part = of.parts.front();
  if (kind == Fault::Kind::gone) {
    const Fault gone{kind, part, 1, 0, true};
    constexpr std::array gone_rate = {0.5};  // Of no meaning: there is one such machine.
    if (!of.may_be_gone || !is_near_largest(gone)) return std::nullopt;
    return make_curve(predict_, {number, gone, {}, {}, prior_of_class(number) * prior_of_gone}, gone_rate, nullptr);
  }
  constexpr double half = 0.5;
  const auto known = largest_with({kind, part, half, 0, true}), unknown = largest_with({kind, part, half, 0, false});
  if (!known || !unknown || are_within(*known, *unknown, same_within)) return std::nullopt;
  const double prior = prior_of_class(number) * (1 - prior_of_gone) * prior_of_planned_around;
  return make_curve(predict_, {number, {kind, part, 1, 0, true}, {}, {}, prior}, first_rates, nullptr);
}

void FaultSearch::add_known(Fault::Kind kind, std::size_t max_classes) {
  std::vector<std::size_t> numbers(classes_.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::erase_if(numbers, [&](std::size_t i) { return classes_[i].is_setting; });
  std::ranges::stable_sort(numbers, std::ranges::greater(), [&](std::size_t i) { return prior_of_class(i); });
  if (numbers.size() > max_classes) numbers.resize(max_classes);
  std::vector<std::optional<Curve>> known(numbers.size());
  run_parallel(numbers.size(), threads_, [&](std::size_t i) { known[i] = known_of(numbers[i], kind); });
  for (std::optional<Curve>& curve : known) {
    if (curve) curves_.push_back(*std::move(curve));
  }
}

}  // namespace espalier::diagnose
