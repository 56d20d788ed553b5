#include "planners/packing/root_packings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "planners/bounds/cut_rate.h"
#include "planners/packing/balance_switches.h"
#include "planners/packing/capacity_graph.h"
#include "planners/packing/low_root_trees.h"
#include "planners/packing/machine_trees.h"
#include "planners/packing/pack_trees.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/split_switches.h"
#include "schedule/trees/tree_shape.h"

namespace espalier {

namespace {

std::uint32_t highest_of(const std::vector<Arborescence>& trees, std::size_t ranks) {
  std::uint32_t height = 0;
  for (const Arborescence& tree : trees) height = std::max(height, height_of(tree, ranks));
  return height;
}

}  // namespace

FlowNetwork network_of(const Topology& topology, Direction direction, Rank root) {
  if (root.is_none() || topology.first_not_relaying().is_none()) return {topology, direction};
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  nodes[topology.node_of(root).index()].relay = true;
  auto made = Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
  ESPALIER_CHECK(made.has_value(), "a topology stays one when a rank may relay");
  const FlowNetwork network(*made, direction);
  std::vector<bool> is_source(network.vertex_count(), false);
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) {
    is_source[network.source_of(Rank(rank))] = !made->may_relay(Rank(rank));
  }
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : network.arcs()) capacities.push_back(is_source[arc.tail] ? 0 : arc.capacity);
  return network.with_capacities(capacities);
}

std::size_t count_trees(std::span<const Arborescence> trees) {
  std::set<std::vector<std::pair<Rank, Rank>>> different;
  for (const Arborescence& tree : trees) {
    std::vector<std::pair<Rank, Rank>> edges;
    for (const TreeEdge& edge : tree.edges) edges.emplace_back(edge.parent, edge.child);
    std::sort(edges.begin(), edges.end());
    different.insert(std::move(edges));
  }
  return different.size();
}

std::optional<std::vector<Arborescence>> lowest_trees(const Topology& topology, Direction direction, Rank root) {
  std::optional<std::vector<Arborescence>> best = low_root_trees(topology, direction, root);
  if (best && count_trees(*best) > enough_trees) best.reset();
  const FlowNetwork network = network_of(topology, direction, root);
  const BigInteger rate = BigInteger(broadcast_cut(network, root).capacity) * network.capacity_unit();
  auto over_machines = machine_trees(topology, direction, root, Rational(rate));
  if (!over_machines || count_trees(*over_machines) > enough_trees) return best;
  const std::size_t ranks = topology.rank_count();
  if (!best || highest_of(*over_machines, ranks) < highest_of(*best, ranks)) best = std::move(over_machines);
  return best;
}

std::optional<std::vector<Arborescence>> equal_trees(const Topology& topology, Direction direction, Rank root,
                                                     const Rational& gap) {
  const FlowNetwork network = network_of(topology, direction, root);
  const CutRate rate = broadcast_cut(network, root);
  for (const std::int64_t count : {8, 7, 6, 5, 4, 9, 10, 11, 12, 13, 14, 15, 16, 3, 2, 1, 17, 18, 19, 20}) {
    std::vector<std::int64_t> whole;
    for (const FlowArc& arc : network.arcs()) {
      const Rational fit = Rational(BigInteger(arc.capacity) * count, BigInteger(rate.capacity)) * (1 + gap);
      whole.push_back(BigInteger(numerator(fit) / denominator(fit)).convert_to<std::int64_t>());
    }
    const FlowNetwork rounded = network.with_capacities(whole);
    if (!switches_are_balanced(rounded, whole) || !reaches_all_ranks(rounded, rounded.vertex_of(root), true)) continue;
    if (broadcast_cut(rounded, root).capacity < count) continue;
    WorkBudget budget(most_arcs_passed);
    std::vector<std::int64_t> demands(rounded.rank_count(), 0);
    demands[root.index()] = count;
    CapacityGraph graph(rounded, whole);
    if (!split_switches(graph, rounded.rank_vertices(), demands, budget)) return std::nullopt;
    const auto trees = pack_trees(rank_edges(rounded, graph), demands, budget);
    return trees ? std::optional(realize_trees(rounded, graph, *trees)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace espalier
