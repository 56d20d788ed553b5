#include "planners/ring/held_karp.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// Cheapest paths from vertex 0 over a set of the others to one of them: vertex v is bit v - 1 of the set.
template <class Price>
class HeldKarp {
 public:
  HeldKarp(std::span<const Price> cost, std::uint32_t n) : others_(n - 1) {
    ESPALIER_CHECK(2 <= n && n <= max_held_karp_vertices, "cheapest cycles are for 2 to 16 vertices");
    const auto arc = [&](std::uint32_t u, std::uint32_t v) -> const Price& { return cost[std::size_t{u} * n + v]; };
    Price sum(1);
    for (std::uint32_t v = 1; v < n; ++v) {
      first_.push_back(arc(0, v));
      closing_.push_back(arc(v, 0));
      for (std::uint32_t u = 1; u < n; ++u) into_.push_back(u == v ? Price(0) : arc(u, v));
    }
    for (const std::vector<Price>* prices : {&first_, &closing_, &into_}) {
      for (const Price& price : *prices) sum += price;
    }
    best_.assign(others_ << others_, sum);  // Dearer than any path: ends that are not in the set never win.
  }

  std::vector<std::uint32_t> run() {
    const std::size_t all = (std::size_t{1} << others_) - 1;
    for (std::size_t set = 1; set <= all; ++set) {
      for (std::size_t last = 0; last < others_; ++last) {
        if (has(set, last)) best_[set * others_ + last] = reach(set, last);
      }
    }
    std::vector<std::uint32_t> order;
    std::size_t end = cheapest_via(all, closing_.data());
    for (std::size_t set = all; true; end = cheapest_via(set, &into_[end * others_])) {
      order.push_back(static_cast<std::uint32_t>(end + 1));
      set &= ~(std::size_t{1} << end);
      if (set == 0) break;
    }
    order.push_back(0);
    std::reverse(order.begin(), order.end());
    return order;
  }

 private:
  static bool has(std::size_t set, std::size_t vertex) { return (set >> vertex & 1U) != 0; }

  [[nodiscard]] Price reach(std::size_t set, std::size_t last) const {
    const std::size_t rest = set & ~(std::size_t{1} << last);
    if (rest == 0) return first_[last];
    const Price* ends = &best_[rest * others_];
    const Price* into = &into_[last * others_];
    Price least = ends[0] + into[0];
    for (std::size_t via = 1; via < others_; ++via) {
      Price price = ends[via] + into[via];
      if (price < least) least = std::move(price);
    }
    return least;
  }

  /// The end of a path over `set` from which going on is cheapest; the lowest of equals.
  [[nodiscard]] std::size_t cheapest_via(std::size_t set, const Price* onward) const {
    std::size_t cheapest = others_;
    Price least(0);
    for (std::size_t via = 0; via < others_; ++via) {
      if (!has(set, via)) continue;
      Price price = best_[set * others_ + via] + onward[via];
      if (cheapest != others_ && !(price < least)) continue;
      cheapest = via;
      least = std::move(price);
    }
    return cheapest;
  }

  std::size_t others_;
  std::vector<Price> first_, closing_, into_;  ///< Arcs from vertex 0, to it, and into each other vertex, in a row.
  std::vector<Price> best_;                    ///< By set and end.
};

/// Improves a cycle by letting two segments that follow each other change places.
class SegmentExchange {
 public:
  SegmentExchange(std::span<const double> cost, std::vector<std::uint32_t> order)
      : cost_(cost), n_(order.size()), order_(std::move(order)) {}

  std::vector<std::uint32_t> run() {
    constexpr int max_rounds = 64;
    for (int round = 0; round < max_rounds && improve(); ++round) {
    }
    return std::move(order_);
  }

 private:
  [[nodiscard]] double arc(std::size_t from, std::size_t to) const {
    return cost_[std::size_t{order_[from % n_]} * n_ + order_[to % n_]];
  }

  /// The first exchange that helps for each begin of the first segment.
  bool improve() {
    bool improved = false;
    for (std::size_t i = 0; i + 2 < n_; ++i) improved = improve_at(i) || improved;
    return improved;
  }

  /// Segments [i+1, j] and [j+1, k].
  bool improve_at(std::size_t i) {
    for (std::size_t j = i + 1; j + 1 < n_; ++j) {
      const double saved = arc(i, i + 1) + arc(j, j + 1) - arc(i, j + 1);
      for (std::size_t k = j + 1; k < n_; ++k) {
        const double gain = saved + arc(k, k + 1) - arc(k, i + 1) - arc(j, k + 1);
        if (gain <= min_gain * arc(i, i + 1)) continue;
        const auto at = [&](std::size_t place) { return order_.begin() + static_cast<std::ptrdiff_t>(place); };
        std::rotate(at(i + 1), at(j + 1), at(k + 1));
        return true;
      }
    }
    return false;
  }

  static constexpr double min_gain = 1e-9;  ///< Of the first arc: rounding must not make this go round for ever.
  std::span<const double> cost_;
  std::size_t n_;
  std::vector<std::uint32_t> order_;
};

std::vector<std::uint32_t> nearest_next(std::span<const double> cost, std::uint32_t n, std::uint32_t start) {
  std::vector<std::uint32_t> order = {start};
  std::vector<bool> passed(n, false);
  passed[start] = true;
  while (order.size() < n) {
    const std::size_t row = std::size_t{order.back()} * n;
    std::uint32_t nearest = n;
    for (std::uint32_t i = 1; i < n; ++i) {
      const std::uint32_t v = (order.back() + i) % n;
      if (!passed[v] && (nearest == n || cost[row + v] < cost[row + nearest])) nearest = v;
    }
    passed[nearest] = true;
    order.push_back(nearest);
  }
  return order;
}

double cost_of(std::span<const double> cost, const std::vector<std::uint32_t>& order) {
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += cost[std::size_t{order[i]} * order.size() + order[(i + 1) % order.size()]];
  }
  return sum;
}

}  // namespace

std::vector<std::uint32_t> cheapest_cycle(std::span<const double> cost, std::uint32_t n) {
  return HeldKarp<double>(cost, n).run();
}

std::vector<std::uint32_t> cheapest_cycle(std::span<const BigInteger> cost, std::uint32_t n) {
  // Machine integers are ten times faster where they hold the sum of all costs twice.
  BigInteger sum = std::accumulate(cost.begin(), cost.end(), BigInteger(1));
  if (2 * sum >= BigInteger(1) << 62) return HeldKarp<BigInteger>(cost, n).run();
  std::vector<std::int64_t> small;
  small.reserve(cost.size());
  for (const BigInteger& value : cost) small.push_back(value.convert_to<std::int64_t>());
  return HeldKarp<std::int64_t>(small, n).run();
}

std::vector<std::uint32_t> improve_cycle(std::span<const double> cost, std::vector<std::uint32_t> order) {
  order = SegmentExchange(cost, std::move(order)).run();
  std::rotate(order.begin(), std::find(order.begin(), order.end(), 0U), order.end());
  return order;
}

std::vector<std::vector<std::uint32_t>> cheap_cycles(std::span<const double> cost, std::uint32_t n) {
  constexpr std::uint32_t max_starts = 4;
  std::vector<std::pair<double, std::vector<std::uint32_t>>> found;
  for (std::uint32_t i = 0; i < std::min(max_starts, n); ++i) {
    std::vector<std::uint32_t> order = improve_cycle(cost, nearest_next(cost, n, i * n / max_starts));
    found.emplace_back(cost_of(cost, order), std::move(order));
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<std::uint32_t>> cycles;
  for (auto& [sum, order] : found) cycles.push_back(std::move(order));
  return cycles;
}

}  // namespace espalier::planners
