#include "planners/packing/simplify_graph.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "planners/packing/demand_oracle.h"
#include "planners/packing/switch_sides.h"

namespace espalier {
namespace {

void contract(CapacityGraph& graph, const SwitchEdges& edges) {
  for (const bool may_return : {false, true}) {
    for (const std::uint32_t in : edges.in) {
      for (const std::uint32_t out : edges.out) {
        if ((graph.edge(in).tail == graph.edge(out).head) != may_return) continue;
        const std::int64_t amount = std::min(graph.edge(in).capacity, graph.edge(out).capacity);
        if (amount > 0) graph.split_off(in, out, amount);
      }
    }
  }
}

constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();

/// Hops from the nearest rank.
std::vector<std::uint32_t> hops_from_ranks(const CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices) {
  std::vector<std::uint32_t> hops(graph.vertex_count(), unreached);
  std::vector<std::uint32_t> order(rank_vertices.begin(), rank_vertices.end());
  for (const std::uint32_t vertex : order) hops[vertex] = 0;
  for (std::size_t done = 0; done < order.size(); ++done) {
    for (const std::uint32_t id : graph.out_edges(order[done])) {
      const std::uint32_t next = graph.edge(id).head;
      if (graph.edge(id).capacity == 0 || hops[next] <= hops[order[done]] + 1) continue;
      hops[next] = hops[order[done]] + 1;
      order.push_back(next);
    }
  }
  return hops;
}

/// The edges into and out of all switches that are `nearest` hops or more from the ranks; none when the other switches
/// would be unbalanced without them.
std::vector<std::uint32_t> edges_of_tiers(const CapacityGraph& graph, std::span<const std::uint32_t> hops,
                                          std::uint32_t nearest) {
  std::vector<std::uint32_t> around;
  std::vector<std::int64_t> surplus(graph.vertex_count(), 0);
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
    const CapacityGraph::Edge& edge = graph.edge(id);
    if (edge.capacity == 0 || (hops[edge.tail] < nearest && hops[edge.head] < nearest)) continue;
    around.push_back(id);
    surplus[edge.tail] -= edge.capacity;
    surplus[edge.head] += edge.capacity;
  }
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
    if (hops[vertex] > 0 && hops[vertex] < nearest && surplus[vertex] != 0) return {};
  }
  return around;
}

}  // namespace

void contract_simple_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices) {
  std::vector<bool> is_switch(graph.vertex_count(), true);
  for (const std::uint32_t vertex : rank_vertices) is_switch[vertex] = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
      if (!is_switch[vertex]) continue;
      const SwitchEdges edges(graph, vertex);
      if (edges.in.size() > 1 && edges.out.size() > 1 && edges.count_neighbours(graph) > 2) continue;
      is_switch[vertex] = false;
      contract(graph, edges);
      changed = true;
    }
  }
}

bool drop_upper_tiers(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices) {
  const std::vector<std::uint32_t> around = edges_of_tiers(graph, hops_from_ranks(graph, rank_vertices), 2);
  for (const std::uint32_t id : around) graph.take(id, graph.edge(id).capacity);
  return !around.empty();
}

void drop_idle_tiers(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                     std::span<const std::int64_t> demands, WorkBudget& budget) {
  const std::vector<std::uint32_t> hops = hops_from_ranks(graph, rank_vertices);
  DemandOracle oracle(graph.vertex_count(), rank_vertices, demands, budget);
  std::uint32_t farthest = 0;
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
    const CapacityGraph::Edge& edge = graph.edge(id);
    oracle.add_edge(edge.tail, edge.head, edge.capacity);
    if (edge.capacity > 0 && hops[edge.tail] != unreached) farthest = std::max(farthest, hops[edge.tail]);
  }
  for (std::uint32_t nearest = 2; nearest <= farthest; ++nearest) {
    const std::vector<std::uint32_t> around = edges_of_tiers(graph, hops, nearest);
    if (around.empty()) continue;
    for (const std::uint32_t id : around) oracle.set_capacity(id, 0);
    if (oracle.is_satisfied()) {
      for (const std::uint32_t id : around) graph.take(id, graph.edge(id).capacity);
      return;
    }
    for (const std::uint32_t id : around) oracle.set_capacity(id, graph.edge(id).capacity);
  }
}

}  // namespace espalier
