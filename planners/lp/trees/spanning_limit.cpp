#include "planners/lp/trees/spanning_limit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

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

/// The best of some rounds of multiplicative prices, in whole numbers.
std::vector<BigInteger> multiplicative_prices(const ResourceGraph& graph) {
  constexpr std::size_t rounds = 4000;
  constexpr double whole = 1 << 24U;  // what the largest price becomes
  MultiplicativePrices search(graph);
  double least = 0;
  std::vector<double> best;
  for (std::size_t round = 0; round < rounds; ++round) {
    const double limit = search.next();
    if (!best.empty() && limit >= least) continue;
    least = limit;
    best = search.prices();
  }
  const double largest = *std::ranges::max_element(best);
  std::vector<BigInteger> prices;
  for (const double price : best) prices.emplace_back(std::max(1LL, std::llround(price / largest * whole)));
  return prices;
}

/// The vertices that cables of a capacity and more join, each set named by one of them.
std::vector<std::uint32_t> joined_by(const ResourceGraph& graph, const BigInteger& capacity) {
  std::vector<std::uint32_t> set(graph.node_ranks.size());
  std::iota(set.begin(), set.end(), 0);
  const auto find = [&](std::uint32_t node) {
    while (set[node] != node) node = set[node] = set[set[node]];
    return node;
  };
  for (const ResourceGraph::Edge& edge : graph.edges) {
    const auto is_wide = [&](std::uint32_t resource) { return graph.capacity[resource] >= capacity; };
    if (std::ranges::all_of(edge.resources, is_wide)) set[find(edge.tail)] = find(edge.head);
  }
  for (std::uint32_t node = 0; node < set.size(); ++node) set[node] = find(node);
  return set;
}

/// What proves that parts of a network, such as the machines of a cluster, send each other more than their cables carry
/// (docs/bounds.md, Lemma 9 for parts): a cable has a price of 1 for each end in a part with ranks that it leaves.
std::vector<BigInteger> prices_of_parts(const ResourceGraph& graph, const std::vector<std::uint32_t>& part_of) {
  std::set<std::uint32_t> with_ranks;
  for (const std::uint32_t node : graph.rank_nodes) with_ranks.insert(part_of[node]);
  std::vector<BigInteger> prices(graph.capacity.size(), 0);
  for (const ResourceGraph::Edge& edge : graph.edges) {
    if (part_of[edge.tail] == part_of[edge.head]) continue;
    const int ends =
        (with_ranks.contains(part_of[edge.tail]) ? 1 : 0) + (with_ranks.contains(part_of[edge.head]) ? 1 : 0);
    for (const std::uint32_t resource : edge.resources) {
      const bool is_backplane = std::ranges::find(graph.node_resources, resource) != graph.node_resources.end();
      if (!is_backplane) prices[resource] = ends;
    }
  }
  return prices;
}

}  // namespace

SpanningLimit spanning_limit(const OrbitGraph& orbits, const TreeOracle& oracle) {
  constexpr std::size_t max_divisions = 32;
  const ResourceGraph& graph = orbits.graph;
  const MasterProgram program = oracle.program();
  SpanningLimit least;
  const auto consider = [&](std::vector<BigInteger> prices) {
    BigInteger worth = 0;
    for (std::size_t r = 0; r < prices.size(); ++r) worth += prices[r] * graph.capacity[r];
    const BigInteger cost = min_unit_cost(program, oracle.cheapest(prices).costs);
    if (cost == 0) return;
    Rational throughput(worth, cost);
    if (least.prices.empty() || throughput < least.throughput) least = {std::move(throughput), std::move(prices)};
  };
  consider(multiplicative_prices(graph));
  const std::set<BigInteger> capacities(graph.capacity.begin(), graph.capacity.end());
  if (capacities.size() > max_divisions) return least;
  for (const BigInteger& capacity : capacities) consider(prices_of_parts(graph, joined_by(graph, capacity)));
  return least;
}

}  // namespace espalier::planners
