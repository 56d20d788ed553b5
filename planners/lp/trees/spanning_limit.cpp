#include "planners/lp/trees/spanning_limit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "planners/graph/grow_tree.h"

namespace espalier::planners {

namespace {

/// Prices by resource that make what is full dear: the more trees are laid along cheap edges, the evener they fill it.
class MultiplicativePrices {
 public:
  explicit MultiplicativePrices(const ResourceGraph& graph)
      : graph_(graph), filled_(graph.capacity.size(), 0), prices_(graph.capacity.size()) {
    for (const BigInteger& capacity : graph.capacity) capacity_.push_back(capacity.convert_to<double>());
  }

  /// What the next prices allow at most; a cheapest tree is laid along them.
  double next() {
    constexpr double sharpness = 10;  // sharper ones find single cuts, which the floors know
    const double fullest = *std::ranges::max_element(filled_);
    for (std::size_t r = 0; r < prices_.size(); ++r) {
      const double fullness = fullest > 0 ? filled_[r] / fullest : 1;
      prices_[r] = std::exp(sharpness * (fullness - 1)) / capacity_[r];
    }
    std::vector<double> lengths;
    for (const ResourceGraph::Edge& edge : graph_.edges) {
      lengths.push_back(price_of(edge) + price_of(graph_.edges[edge.mirror]));
    }
    double cost = 0;
    const ParentTree tree = grow_tree(graph_, graph_.first_relaying, false, lengths);
    for (const auto& path : tree.path) {
      for (const std::uint32_t e : path) {
        cost += lengths[e];
        fill(graph_.edges[e]);
        fill(graph_.edges[graph_.edges[e].mirror]);
      }
    }
    return std::inner_product(prices_.begin(), prices_.end(), capacity_.begin(), 0.0) / cost;
  }

  [[nodiscard]] const std::vector<double>& prices() const { return prices_; }

 private:
  [[nodiscard]] double price_of(const ResourceGraph::Edge& edge) const {
    double price = 0;
    for (const std::uint32_t r : edge.resources) price += prices_[r];
    return price;
  }
  void fill(const ResourceGraph::Edge& edge) {
    for (const std::uint32_t r : edge.resources) filled_[r] += 1 / capacity_[r];
  }

  const ResourceGraph& graph_;
  std::vector<double> capacity_, filled_, prices_;
};

}  // namespace

SpanningLimit spanning_limit(const OrbitGraph& orbits, const TreeOracle& oracle) {
  constexpr std::size_t rounds = 4000;
  constexpr double whole = 1 << 24U;  // what the largest price becomes
  MultiplicativePrices search(orbits.graph);
  double least = 0;
  std::vector<double> best;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double limit = search.next();
    if (!best.empty() && limit >= least) continue;
    least = limit;
    best = search.prices();
  }
  const double largest = *std::ranges::max_element(best);
  SpanningLimit found;
  for (const double price : best) found.prices.emplace_back(std::max(1LL, std::llround(price / largest * whole)));
  BigInteger worth = 0;
  for (std::size_t r = 0; r < best.size(); ++r) worth += found.prices[r] * orbits.graph.capacity[r];
  const MasterProgram program = oracle.program();
  found.throughput = Rational(worth, least_unit_cost(program, oracle.cheapest(found.prices).costs));
  return found;
}

}  // namespace espalier::planners
