#pragma once

// Tested by: tests/property/planners/ring_test.cpp

#include <numeric>
#include <span>
#include <vector>

#include "planners/graph/path_search.h"
#include "planners/graph/resource_graph.h"
#include "planners/lp/column_generation.h"

namespace espalier::planners {

/// The length of each edge when each resource has a price.
template <class Price>
std::vector<Price> edge_lengths(const ResourceGraph& graph, std::span<const Price> prices) {
  std::vector<Price> lengths(graph.edges.size(), Price(0));
  for (std::size_t e = 0; e < lengths.size(); ++e) {
    for (const std::uint32_t resource : graph.edges[e].resources) lengths[e] += prices[resource];
  }
  return lengths;
}

/// The resources that edges use, each edge as often as `uses` says.
std::vector<Entry> resource_loads(const ResourceGraph& graph, std::span<const std::int64_t> uses);

/// Shortest paths from rank to rank through nodes that only forward: what a ring's hops cost at some prices.
template <class Price>
struct RingHops {
  std::vector<ShortestPaths<Price>> from;  ///< By rank.
  std::vector<Price> cost;                 ///< n x n: from the row's rank to the column's; 0 on the diagonal.
  Price far;                               ///< What stands for "no path": dearer than any cycle.
};

template <class Price>
RingHops<Price> make_ring_hops(const ResourceGraph& graph, std::span<const Price> prices) {
  const std::vector<Price> lengths = edge_lengths<Price>(graph, prices);
  const std::uint32_t n = graph.rank_count();
  RingHops<Price> hops;
  hops.far = (std::accumulate(lengths.begin(), lengths.end(), Price(0)) + 1) * n;
  hops.cost.assign(std::size_t{n} * n, hops.far);
  for (std::uint32_t u = 0; u < n; ++u) {
    hops.from.emplace_back(graph, lengths, graph.rank_nodes[u], false);
    hops.cost[std::size_t{u} * n + u] = Price(0);
    for (std::uint32_t v = 0; v < n; ++v) {
      const std::uint32_t node = graph.rank_nodes[v];
      if (u == v || !hops.from[u].has_path(node)) continue;
      hops.cost[std::size_t{u} * n + v] = hops.from[u].distance(node);
    }
  }
  return hops;
}

/// Whether every hop of the cycle has a path.
template <class Price>
bool is_whole(const RingHops<Price>& hops, const std::vector<std::uint32_t>& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (hops.cost[order[i] * order.size() + order[(i + 1) % order.size()]] >= hops.far) return false;
  }
  return true;
}

/// The cycle over those paths. Requires: is_whole.
template <class Price>
Column cycle_column(const ResourceGraph& graph, const RingHops<Price>& hops, const std::vector<std::uint32_t>& order) {
  Column column;
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t source = order[i];
    const std::uint32_t target = order[(i + 1) % order.size()];
    for (const std::uint32_t e : path_from(graph, hops.from[source].entering_edge(), graph.rank_nodes[target], false)) {
      ++uses[e];
      column.edges.push_back(e);
    }
  }
  column.loads = resource_loads(graph, uses);
  return column;
}

}  // namespace espalier::planners
