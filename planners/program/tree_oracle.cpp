#include "planners/program/tree_oracle.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planners/program/arborescence.h"

namespace espalier {

namespace {

/// Shortest paths between all ranks through nodes that are not ranks.
template <class Price>
struct RankDistances {
  std::vector<ShortestPaths<Price>> from;  ///< By rank.
  std::vector<Price> forward;              ///< n x n: from the row's rank to the column's.
  std::vector<Price> backward;             ///< Its transpose.
};

template <class Price>
RankDistances<Price> rank_distances(const ResourceGraph& graph, std::span<const Price> prices) {
  const std::vector<Price> lengths = edge_lengths<Price>(graph, prices);
  const std::uint32_t n = graph.rank_count();
  // Dearer than any tree: what stands for "no path".
  const Price far = (std::accumulate(lengths.begin(), lengths.end(), Price(0)) + 1) * n;
  RankDistances<Price> distances;
  distances.forward.assign(std::size_t{n} * n, far);
  distances.backward.assign(std::size_t{n} * n, far);
  for (std::uint32_t u = 0; u < n; ++u) {
    distances.from.push_back(shortest_paths(graph, lengths, graph.rank_nodes[u], false));
    for (std::uint32_t v = 0; v < n; ++v) {
      const std::uint32_t node = graph.rank_nodes[v];
      if (u == v || distances.from[u].entering_edge[node] == ShortestPaths<Price>::no_edge) continue;
      distances.forward[std::size_t{u} * n + v] = distances.from[u].distance[node];
      distances.backward[std::size_t{v} * n + u] = distances.from[u].distance[node];
    }
  }
  return distances;
}

template <class Price>
Pattern tree_pattern(const ResourceGraph& graph, const RankDistances<Price>& distances, std::uint32_t group,
                     std::uint32_t root, bool inward) {
  const std::uint32_t n = graph.rank_count();
  const std::vector<std::uint32_t> parent =
      cheapest_arborescence(inward ? distances.backward : distances.forward, n, root);
  Pattern pattern{group, {}, {}};
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  for (std::uint32_t v = 0; v < n; ++v) {
    if (v == root) continue;
    const std::uint32_t source = inward ? v : parent[v];
    const std::uint32_t target = inward ? parent[v] : v;
    const auto path_begin = static_cast<std::ptrdiff_t>(pattern.edges.size());
    for (std::uint32_t node = graph.rank_nodes[target]; node != graph.rank_nodes[source];) {
      const std::uint32_t e = distances.from[source].entering_edge[node];
      ++uses[e];
      if (graph.mirrored) ++uses[graph.edges[e].mirror];
      pattern.edges.push_back(e);
      node = graph.edges[e].tail;
    }
    std::reverse(pattern.edges.begin() + path_begin, pattern.edges.end());
  }
  pattern.loads = resource_loads(graph, uses);
  return pattern;
}

template <class Price>
Offer<Price> cheapest_trees(const ResourceGraph& graph, std::span<const Price> prices) {
  const RankDistances<Price> distances = rank_distances(graph, prices);
  Offer<Price> offer;
  for (std::uint32_t root = 0; root < (graph.mirrored ? 1 : graph.rank_count()); ++root) {
    offer.patterns.push_back(tree_pattern(graph, distances, 2 * root, root, false));
    if (!graph.mirrored) offer.patterns.push_back(tree_pattern(graph, distances, 2 * root + 1, root, true));
  }
  for (const Pattern& pattern : offer.patterns) {
    Price cost(0);
    for (const Entry entry : pattern.loads) cost += prices[entry.index] * static_cast<Price>(entry.value);
    offer.costs.push_back(std::move(cost));
  }
  return offer;
}

}  // namespace

PatternProgram TreeOracle::program() const {
  PatternProgram program;
  program.capacity = graph_.capacity;
  program.sharing = Sharing::free;
  program.family_count = graph_.mirrored ? 1 : graph_.rank_count();
  for (std::uint32_t family = 0; family < program.family_count; ++family) {
    program.family.push_back(family);
    if (!graph_.mirrored) program.family.push_back(family);
  }
  return program;
}

Offer<double> TreeOracle::cheapest(std::span<const double> prices) const { return cheapest_trees(graph_, prices); }

Offer<BigInteger> TreeOracle::cheapest(std::span<const BigInteger> prices) const {
  return cheapest_trees(graph_, prices);
}

}  // namespace espalier
