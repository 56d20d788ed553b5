#include "planners/symmetry/automorphisms.h"

#include <map>
#include <tuple>
#include <utility>

#include "planners/symmetry/colored_graph.h"

namespace espalier::planners {

namespace {

/// What kind of arc joins two nodes: the capacity of the edge, and which of the commuting automorphisms lead there.
using ArcKey = std::pair<BigInteger, std::uint64_t>;
using ArcKeys = std::map<std::pair<std::uint32_t, std::uint32_t>, ArcKey>;

ArcKeys collect_arcs(const ResourceGraph& graph, std::span<const Permutation> commuting) {
  ArcKeys arcs;
  for (const ResourceGraph::Edge& edge : graph.edges) {
    arcs[{edge.tail, edge.head}].first = graph.capacity[edge.resources.front()];
  }
  for (std::size_t g = 0; g < commuting.size(); ++g) {
    for (std::uint32_t v = 0; v < commuting[g].size(); ++v) {
      if (commuting[g][v] != v) arcs[{v, commuting[g][v]}].second |= std::uint64_t{1} << g;
    }
  }
  return arcs;
}

}  // namespace

/// A colored graph knows no kinds of arcs: there is one copy of the nodes per bit of the kind's number, the copies of a
/// node joined by arcs, and an arc lies in the copies whose bit its kind has.
std::vector<Permutation> find_automorphisms(const Topology& topology, const ResourceGraph& graph,
                                            std::span<const Permutation> commuting,
                                            std::span<const std::int64_t> marks) {
  const std::size_t nodes = topology.node_count();
  const ArcKeys arcs = collect_arcs(graph, commuting);
  std::vector<ArcKey> arc_keys;
  for (const auto& [ends, key] : arcs) arc_keys.push_back(key);
  const std::map<ArcKey, std::uint32_t> kinds = number_keys(arc_keys, 1);
  using NodeKey = std::tuple<bool, bool, std::int64_t, std::int64_t>;
  std::vector<NodeKey> node_keys;
  for (std::size_t v = 0; v < nodes; ++v) {
    const Node& node = topology.node(NodeId(v));
    const bool is_marked = node.is_rank && !marks.empty();
    const std::int64_t mark = is_marked ? marks[topology.rank_of(NodeId(v)).index()] : 0;
    node_keys.emplace_back(node.is_rank, node.must_not_relay(), node.bandwidth.bytes_per_second, mark);
  }
  const std::map<NodeKey, std::uint32_t> colors = number_keys(node_keys, 0);

  std::uint32_t layers = 1;
  while ((kinds.size() >> layers) != 0) ++layers;
  ColoredGraph copies;
  for (std::uint32_t layer = 0; layer < layers; ++layer) {
    for (std::size_t v = 0; v < nodes; ++v) {
      const auto vertex = static_cast<std::uint32_t>(copies.colors.size());
      copies.colors.push_back(static_cast<std::uint32_t>(layer * colors.size() + colors.at(node_keys[v])));
      if (layer > 0) copies.arcs.emplace_back(static_cast<std::uint32_t>(vertex - nodes), vertex);
    }
  }
  for (const auto& [ends, key] : arcs) {
    const std::uint32_t kind = kinds.at(key);
    for (std::uint32_t layer = 0; layer < layers; ++layer) {
      const auto base = static_cast<std::uint32_t>(layer * nodes);
      if ((kind >> layer & 1U) != 0) copies.arcs.emplace_back(base + ends.first, base + ends.second);
    }
  }
  std::vector<Permutation> generators;
  visit_automorphisms(copies, [&](std::span<const std::uint32_t> automorphism) {
    generators.emplace_back(automorphism.begin(), automorphism.begin() + static_cast<std::ptrdiff_t>(nodes));
  });
  return generators;
}

}  // namespace espalier::planners
