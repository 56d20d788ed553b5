#include "planners/ring/ring_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "planners/program/pattern_master.h"
#include "planners/ring/held_karp.h"
#include "planners/ring/ring_placement.h"

namespace espalier {

namespace {

/// Shortest paths from rank to rank through nodes that only forward.
template <class Price>
struct Hops {
  std::vector<ShortestPaths<Price>> from;  ///< By rank.
  std::vector<Price> cost;                 ///< n x n: from the row's rank to the column's.
  Price far;                               ///< What stands for "no path": dearer than any cycle.
};

template <class Price>
Hops<Price> make_hops(const ResourceGraph& graph, std::span<const Price> prices) {
  const std::vector<Price> lengths = edge_lengths<Price>(graph, prices);
  const std::uint32_t n = graph.rank_count();
  Hops<Price> hops;
  hops.far = (std::accumulate(lengths.begin(), lengths.end(), Price(0)) + 1) * n;
  hops.cost.assign(std::size_t{n} * n, hops.far);
  for (std::uint32_t u = 0; u < n; ++u) {
    hops.from.push_back(shortest_paths(graph, lengths, graph.rank_nodes[u], false));
    hops.cost[std::size_t{u} * n + u] = Price(0);
    for (std::uint32_t v = 0; v < n; ++v) {
      const std::uint32_t node = graph.rank_nodes[v];
      if (u == v || hops.from[u].entering_edge[node] == ShortestPaths<Price>::no_edge) continue;
      hops.cost[std::size_t{u} * n + v] = hops.from[u].distance[node];
    }
  }
  return hops;
}

template <class Price>
bool is_whole(const Hops<Price>& hops, const std::vector<std::uint32_t>& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (hops.cost[order[i] * order.size() + order[(i + 1) % order.size()]] >= hops.far) return false;
  }
  return true;
}

/// Requires: is_whole.
template <class Price>
Pattern cycle_pattern(const ResourceGraph& graph, const Hops<Price>& hops, const std::vector<std::uint32_t>& order) {
  Pattern pattern;
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t source = order[i];
    const std::uint32_t target = order[(i + 1) % order.size()];
    const auto path_begin = static_cast<std::ptrdiff_t>(pattern.edges.size());
    for (std::uint32_t node = graph.rank_nodes[target]; node != graph.rank_nodes[source];) {
      const std::uint32_t e = hops.from[source].entering_edge[node];
      ++uses[e];
      pattern.edges.push_back(e);
      node = graph.edges[e].tail;
    }
    std::reverse(pattern.edges.begin() + path_begin, pattern.edges.end());
  }
  pattern.loads = resource_loads(graph, uses);
  return pattern;
}

template <class Price>
Offer<Price> cheapest_ring(const ResourceGraph& graph, std::span<const Price> prices) {
  const Hops<Price> hops = make_hops(graph, prices);
  const std::vector<std::uint32_t> order = cheapest_cycle(std::span<const Price>(hops.cost), graph.rank_count());
  Offer<Price> offer;
  offer.patterns.push_back(cycle_pattern(graph, hops, order));
  Price cost(0);
  for (const Entry entry : offer.patterns.front().loads) cost += prices[entry.index] * static_cast<Price>(entry.value);
  offer.costs.push_back(std::move(cost));
  return offer;
}

}  // namespace

PatternProgram RingOracle::program() const { return {graph_.capacity, {0}, 1, Sharing::free}; }

Offer<double> RingOracle::cheapest(std::span<const double> prices) const { return cheapest_ring(graph_, prices); }

Offer<BigInteger> RingOracle::cheapest(std::span<const BigInteger> prices) const {
  return cheapest_ring(graph_, prices);
}

bool RingOracle::has_cycle(const ResourceGraph& graph) {
  const std::vector<double> prices(graph.capacity.size(), 1.0);
  const Hops<double> hops = make_hops<double>(graph, prices);
  return is_whole(hops, cheapest_cycle(std::span<const double>(hops.cost), graph.rank_count()));
}

std::optional<RingSet> best_fractional_rings(const Topology& topology) {
  if (topology.rank_count() < 2 || topology.rank_count() > most_held_karp_vertices) return std::nullopt;
  const ResourceGraph graph = make_resource_graph(topology, false);
  if (!RingOracle::has_cycle(graph)) return RingSet{};
  const RingOracle oracle(graph);
  const PatternSolution solution = solve_patterns(oracle.program(), oracle, {.rounds = 1000, .warm_rounds = 24});
  if (!solution.attained) return std::nullopt;
  RingSet set = place_rings(topology, graph, solution.parts);
  set.limit = solution.limit * graph.unit;
  return set;
}

namespace {

/// Column generation with cheap cycles instead of cheapest: the master program's optimum over what they find.
class CheapGeneration {
 public:
  CheapGeneration(const ResourceGraph& graph)
      : graph_(graph), program_{graph.capacity, {0}, 1, Sharing::free}, master_(program_) {}

  std::vector<PatternSolution::Part> run() {
    if (!warm_up()) return {};
    for (int round = 0; round < most_rounds && master_.solve(); ++round) {
      if (!add(master_.prices(), true)) break;
    }
    if (!master_.solve()) return {};
    const auto exact = master_.exact();
    std::vector<PatternSolution::Part> parts;
    for (std::size_t i = 0; exact && i < patterns_.size(); ++i) {
      if (exact->amounts[i] > 0) parts.push_back({patterns_[i], exact->amounts[i]});
    }
    return parts;
  }

 private:
  /// Links that are full already become dear.
  bool warm_up() {
    std::vector<double> filled(program_.capacity.size(), 0);
    for (int round = 0; round < warm_rounds; ++round) {
      const double fullest = *std::max_element(filled.begin(), filled.end());
      std::vector<double> prices;
      for (std::size_t r = 0; r < filled.size(); ++r) {
        const double fullness = fullest > 0 ? filled[r] / fullest : 1;
        prices.push_back(std::exp(sharpness * (fullness - 1)) / program_.capacity[r].convert_to<double>());
      }
      if (!add(prices, false) && patterns_.empty()) return false;
      for (const Entry entry : last_.loads) {
        filled[entry.index] += static_cast<double>(entry.value) / program_.capacity[entry.index].convert_to<double>();
      }
    }
    return true;
  }

  bool add(const std::vector<double>& prices, bool if_gaining) {
    const Hops<double> hops = make_hops<double>(graph_, prices);
    bool added = false;
    bool cheapest = true;
    for (const std::vector<std::uint32_t>& order : cheap_cycles(hops.cost, graph_.rank_count())) {
      if (!is_whole(hops, order)) continue;
      Pattern pattern = cycle_pattern(graph_, hops, order);
      if (std::exchange(cheapest, false)) last_ = pattern;
      if (if_gaining && master_.gain(pattern) <= least_gain) continue;
      if (!known_.insert(pattern.loads).second) continue;
      master_.add(pattern);
      patterns_.push_back(std::move(pattern));
      added = true;
    }
    return added;
  }

  static constexpr int most_rounds = 300;
  static constexpr int warm_rounds = 24;
  static constexpr double sharpness = 12;
  static constexpr double least_gain = 1e-6;

  const ResourceGraph& graph_;
  PatternProgram program_;
  PatternMaster master_;
  std::vector<Pattern> patterns_;
  std::set<std::vector<Entry>> known_;
  Pattern last_;
};

}  // namespace

RingSet good_fractional_rings(const Topology& topology) {
  constexpr std::size_t most_ranks = 128;
  if (topology.rank_count() < 2 || topology.rank_count() > most_ranks) return {};
  const ResourceGraph graph = make_resource_graph(topology, false);
  return place_rings(topology, graph, CheapGeneration(graph).run());
}

}  // namespace espalier
