#include "compare/fit/tangents.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::compare {

double Tangents::Tangent::at(std::span<const double> others) const {
  double sum = time;
  for (std::size_t i = 0; i < others.size(); ++i) sum += slopes[i] * (others[i] - costs[i]);
  return sum;
}

void Tangents::add(std::size_t run, std::vector<double> costs, double time, std::vector<double> slopes) {
  ESPALIER_CHECK(slopes.size() == costs.size(), "a slope for every cost");
  correct(run, costs, time);
  of_runs_[run].push_back({std::move(costs), time, std::move(slopes)});
}

void Tangents::correct(std::size_t run, std::span<const double> costs, double time) {
  constexpr double slack = 1e-3;  // of the time
  for (Tangent& tangent : of_runs_[run]) {
    if (tangent.at(costs) > time * (1 + slack)) tangent.claims_too_much = true;
  }
}

double Tangents::estimate(std::size_t run, std::span<const double> costs) const {
  ESPALIER_CHECK(is_known(run), "an estimate needs a tangent");
  double time = 0;
  bool has_any = false;
  for (const Tangent& tangent : of_runs_[run]) {
    if (tangent.claims_too_much) continue;
    time = std::max(time, tangent.at(costs));
    has_any = true;
  }
  return has_any ? time : of_runs_[run].back().at(costs);
}

bool Tangents::depends_on(std::size_t run, std::size_t cost) const {
  return std::ranges::any_of(of_runs_[run], [&](const Tangent& tangent) { return tangent.slopes[cost] != 0; });
}

}  // namespace espalier::compare
