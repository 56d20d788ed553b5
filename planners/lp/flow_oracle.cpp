#include "planners/lp/flow_oracle.h"

#include <utility>

#include "planners/graph/path_search.h"

namespace espalier::planners {

namespace {

/// The paths of a tree of shortest paths between the ranks that it serves or passes.
std::vector<std::uint32_t> rank_paths(const ResourceGraph& graph, const std::vector<std::uint32_t>& entering_edge,
                                      std::uint32_t source, const std::vector<std::int64_t>& uses) {
  std::vector<std::uint32_t> edges;
  for (const std::uint32_t end : graph.rank_nodes) {
    if (end == source || uses[entering_edge[end]] == 0) continue;
    const std::vector<std::uint32_t> path = path_from(graph, entering_edge, end, false);
    edges.insert(edges.end(), path.begin(), path.end());
  }
  return edges;
}

template <class Price>
PricedColumns<Price> cheapest_flows(const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
                                    std::span<const Price> prices) {
  const ResourceGraph& graph = orbits.graph;
  const std::vector<Price> lengths = edge_lengths<Price>(orbits, prices);
  PricedColumns<Price> priced;
  for (std::uint32_t group = 0; group < demands.size(); ++group) {
    const std::uint32_t source = graph.rank_nodes[demands[group].source];
    const ShortestPaths<Price> paths(graph, lengths, source, true);
    Column column;
    column.group = group;
    std::vector<std::int64_t> uses(graph.edges.size(), 0);
    Price cost(0);
    for (std::size_t i = 0; i < demands[group].targets.size(); ++i) {
      const std::uint32_t target = demands[group].targets[i];
      const std::int64_t amount = demands[group].amount(i);
      cost += paths.distance(graph.rank_nodes[target]) * static_cast<Price>(amount);
      for (std::uint32_t node = graph.rank_nodes[target]; node != source;) {
        const std::uint32_t e = paths.entering_edge()[node];
        uses[e] += amount;
        node = graph.edges[e].tail;
      }
    }
    column.edges = rank_paths(graph, paths.entering_edge(), source, uses);
    column.loads = orbit_loads(orbits, uses, demands[group].copies);
    priced.columns.push_back(std::move(column));
    priced.costs.push_back(cost * static_cast<Price>(demands[group].copies));
  }
  return priced;
}

}  // namespace

MasterProgram FlowOracle::program() const {
  MasterProgram program;
  program.capacity = orbits_.capacity;
  program.sharing = Sharing::equal;
  program.family_count = static_cast<std::uint32_t>(demands_.size());
  for (std::uint32_t group = 0; group < demands_.size(); ++group) program.family.push_back(group);
  return program;
}

PricedColumns<double> FlowOracle::cheapest(std::span<const double> prices) const {
  return cheapest_flows(orbits_, demands_, prices);
}

PricedColumns<BigInteger> FlowOracle::cheapest(std::span<const BigInteger> prices) const {
  return cheapest_flows(orbits_, demands_, prices);
}

}  // namespace espalier::planners
