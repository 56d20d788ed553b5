#include "diagnose/places.h"

#include <algorithm>
#include <iterator>

namespace espalier::diagnose {
namespace {

bool are_one_kind(const Hypothesis& one, const Hypothesis& other) {
  const Fault &first = one.faults.front(), &second = other.faults.front();
  return one.curves.front()->fault_class == other.curves.front()->fault_class && first.kind == second.kind &&
         first.is_planned_around == second.is_planned_around;
}

/// So many of the parts, evenly spread; all where there are no more.
std::vector<std::string> spread(const std::vector<std::string>& parts, std::size_t max) {
  const std::size_t count = std::min(max, parts.size());
  std::vector<std::string> few;
  for (std::size_t i = 0; i < count; ++i) few.push_back(parts[i * parts.size() / count]);
  return few;
}

}  // namespace

std::vector<Hypothesis> in_every_place(std::span<const FaultClass> classes, std::vector<Hypothesis> hypotheses,
                                       std::size_t max_places,
                                       const std::function<void(std::span<Hypothesis>)>& predict) {
  constexpr std::size_t max_kinds = 5;
  constexpr double max_behind = 20;  // As a logarithm: more than another part of the class may bring.
  // Half for the likeliest kind of fault, which most often is it.
  const std::size_t of_first = std::max<std::size_t>(1, max_places / 2);
  const std::size_t of_other = std::max<std::size_t>(1, (max_places - of_first) / (max_kinds - 1));
  std::vector<Hypothesis> left = std::move(hypotheses), placed, other;
  const double first = left.empty() ? 0 : posterior(left.front());
  for (std::size_t kinds = 0; kinds < max_kinds && !left.empty(); ++kinds) {
    const Hypothesis best = left.front();
    if (posterior(best) < first - max_behind) break;
    std::vector<Hypothesis> known;
    double prior = 0;
    std::erase_if(left, [&](const Hypothesis& each) {
      if (!are_one_kind(each, best)) return false;
      prior += each.prior;
      known.push_back(each);
      return true;
    });
    const auto is_known = [&](const std::string& part) {
      return std::ranges::any_of(known, [&](const Hypothesis& each) { return each.faults.front().part == part; });
    };
    std::vector<std::string> places =
        spread(classes[best.curves.front()->fault_class].parts, kinds == 0 ? of_first : of_other);
    std::erase_if(places, is_known);
    prior /= static_cast<double>(known.size() + places.size());
    for (Hypothesis& each : known) each.prior = prior;
    std::ranges::move(known, std::back_inserter(placed));
    for (const std::string& part : places) {
      Hypothesis& there = other.emplace_back(best);
      there.faults.front().part = part;
      there.prior = prior;
    }
  }
  predict(other);
  for (std::vector<Hypothesis>* each : {&other, &left}) std::ranges::move(*each, std::back_inserter(placed));
  std::ranges::stable_sort(placed, std::ranges::greater(), posterior);
  return placed;
}

}  // namespace espalier::diagnose
