#include "experts/routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/random.h"

namespace espalier::experts {
namespace {

std::vector<double> loads_of(const Popularity& popularity, const Placement& placement, std::size_t ranks) {
  std::vector<double> loads(ranks, 0);
  for (std::size_t expert = 0; expert < popularity.size(); ++expert) loads[placement[expert]] += popularity[expert];
  return loads;
}

/// The most popular first, each to the rank that has least and still room.
Placement hand_out(const Popularity& popularity, std::size_t ranks) {
  std::vector<std::size_t> order(popularity.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return popularity[a] > popularity[b]; });
  const std::size_t room = popularity.size() / ranks;
  std::vector<double> loads(ranks, 0);
  std::vector<std::size_t> counts(ranks, 0);
  Placement placement(popularity.size());
  for (const std::size_t expert : order) {
    std::size_t best = ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (counts[rank] < room && (best == ranks || loads[rank] < loads[best])) best = rank;
    }
    placement[expert] = static_cast<std::uint32_t>(best);
    loads[best] += popularity[expert];
    ++counts[best];
  }
  return placement;
}

/// Swaps two experts so that the busier of their ranks gets less, the most that one swap can; whether there was one.
bool swap_best(const Popularity& popularity, Placement& placement, std::vector<double>& loads) {
  const auto busiest = static_cast<std::uint32_t>(std::ranges::max_element(loads) - loads.begin());
  constexpr double min_gain = 1e-12;
  double best = loads[busiest] - min_gain;
  std::size_t best_own = 0, best_other = 0;
  bool is_found = false;
  for (std::size_t own = 0; own < placement.size(); ++own) {
    if (placement[own] != busiest) continue;
    for (std::size_t other = 0; other < placement.size(); ++other) {
      const double moved = popularity[own] - popularity[other];
      if (placement[other] == busiest || moved <= 0) continue;
      const double after = std::max(loads[busiest] - moved, loads[placement[other]] + moved);
      if (after >= best) continue;
      best = after;
      best_own = own;
      best_other = other;
      is_found = true;
    }
  }
  if (!is_found) return false;
  const double moved = popularity[best_own] - popularity[best_other];
  loads[busiest] -= moved;
  loads[placement[best_other]] += moved;
  std::swap(placement[best_own], placement[best_other]);
  return true;
}

}  // namespace

Popularity zipf_popularity(std::size_t experts, std::size_t top_k, double exponent, std::uint64_t seed) {
  ESPALIER_CHECK(top_k >= 1 && top_k <= experts && exponent >= 0, "a law for some experts");
  std::vector<std::size_t> order(experts);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<double> weights(experts);
  for (std::size_t place = 0; place < experts; ++place) {
    weights[place] = std::pow(static_cast<double>(place + 1), -exponent);
  }
  // The first `full` are in every token; the others share what is left in proportion. Weights fall, so the first that
  // is in no more than every token ends the search.
  double rest = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::size_t full = 0;
  while (full < top_k && weights[full] * static_cast<double>(top_k - full) > rest) rest -= weights[full++];
  Popularity popularity(experts);
  for (std::size_t place = 0; place < experts; ++place) {
    const double chance = place < full ? 1 : weights[place] * static_cast<double>(top_k - full) / rest;
    popularity[order[place]] = std::min(chance, 1.0);  // rounding
  }
  return popularity;
}

Placement place_in_order(std::size_t experts, std::size_t ranks) {
  ESPALIER_CHECK(ranks > 0 && experts % ranks == 0, "as many experts on every rank");
  Placement placement(experts);
  for (std::size_t expert = 0; expert < experts; ++expert) {
    placement[expert] = static_cast<std::uint32_t>(expert / (experts / ranks));
  }
  return placement;
}

Placement search_placement(const Popularity& popularity, const Placement& given, std::size_t ranks) {
  Placement best = given;
  double best_load = 0;
  for (Placement placement : {given, hand_out(popularity, ranks)}) {
    std::vector<double> loads = loads_of(popularity, placement, ranks);
    for (std::size_t swaps = 0; swaps < popularity.size() && swap_best(popularity, placement, loads); ++swaps) {
    }
    const double load = std::ranges::max(loads);
    if (best_load == 0 || load < best_load) {
      best_load = load;
      best = std::move(placement);
    }
  }
  return best;
}

double Routed::busiest() const { return load.empty() ? 0 : std::ranges::max(load); }

Routed route(const Popularity& popularity, const Placement& placement, std::size_t ranks, const Routing& how) {
  ESPALIER_CHECK(placement.size() == popularity.size() && ranks > 0, "a rank for each expert");
  const double all = std::accumulate(popularity.begin(), popularity.end(), 0.0);
  const double mean = all / static_cast<double>(popularity.size());
  Routed routed{std::vector<double>(ranks, 0), std::vector<double>(ranks, 0), 0};
  std::vector<double> none(ranks, 1);  // the chance that a token has no expert of the rank
  double taken_by_all = 0;
  for (std::size_t expert = 0; expert < popularity.size(); ++expert) {
    const double taken = how.capacity > 0 ? std::min(popularity[expert], how.capacity * mean) : popularity[expert];
    taken_by_all += taken;
    routed.sent[placement[expert]] += taken;
    none[placement[expert]] *= 1 - std::min(taken, 1.0);
  }
  const double of_rank = all / static_cast<double>(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    routed.load[rank] = routed.sent[rank] / of_rank;
    if (how.deduplicated) routed.sent[rank] = 1 - none[rank];
  }
  routed.dropped = std::max(0.0, 1 - taken_by_all / all);
  return routed;
}

}  // namespace espalier::experts
