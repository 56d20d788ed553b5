#include "planners/packing/low_root_trees.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "planners/packing/low_tree_search.h"
#include "planners/packing/twin_planes.h"
#include "planners/program/program_forest.h"
#include "planners/program/resource_graph.h"

namespace espalier {

namespace {

constexpr std::size_t most_low_ranks = 512;
constexpr std::int64_t most_low_capacity = std::int64_t{1} << 56U;

/// How wide every edge is taken: as it is, or with its twins.
std::vector<std::int64_t> widths_of(const ResourceGraph& graph, const TwinPlanes* planes) {
  std::vector<std::int64_t> widths(graph.edges.size(), 1);
  for (std::uint32_t e = 0; planes != nullptr && e < widths.size(); ++e) widths[e] = planes->width(e);
  return widths;
}

/// The network without what leaves ranks that must not relay; nothing where numbers are too large.
std::optional<RootNetwork> root_network_of(const ResourceGraph& graph, std::span<const std::int64_t> widths,
                                           bool inward, std::uint32_t root) {
  BigInteger sum = 0;
  RootNetwork network{graph.node_ranks.size(), {}, graph.rank_nodes, root, 0};
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const ResourceGraph::Edge& edge = graph.edges[e];
    const BigInteger room = graph.capacity[edge.resources.front()] * widths[e];
    sum += room;
    if (sum >= most_low_capacity) return std::nullopt;
    GrowingTrees::Arc& arc = network.arcs.emplace_back();
    arc.tail = inward ? edge.head : edge.tail;
    arc.head = inward ? edge.tail : edge.head;
    const bool is_root = arc.tail == graph.rank_nodes[root];
    if (is_root || !graph.is_dead_end[arc.tail]) arc.room = room.convert_to<std::int64_t>();
    if (arc.head == graph.rank_nodes[root]) arc.room = 0;
  }
  network.rate = root_rate(network);
  return network;
}

/// A tree's paths in the direction of the data.
std::vector<std::uint32_t> edges_of(const GrowingTrees::Tree& tree, bool inward) {
  std::vector<std::uint32_t> edges;
  for (const std::uint32_t rank : tree.members) {
    const std::vector<std::uint32_t>& path = tree.path[rank];
    inward ? edges.insert(edges.end(), path.rbegin(), path.rend())
           : edges.insert(edges.end(), path.begin(), path.end());
  }
  return edges;
}

}  // namespace

std::optional<std::vector<Arborescence>> low_root_trees(const Topology& topology, Direction direction, Rank root) {
  if (topology.rank_count() > most_low_ranks) return std::nullopt;
  const bool has_backplane =
      std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; });
  if (has_backplane) return std::nullopt;
  const ResourceGraph graph = make_resource_graph(topology, false);
  const TwinPlanes planes(graph);
  const bool inward = direction == Direction::reversed;
  std::optional<LowTreeSearch::Candidate> best;
  bool is_spread = false;
  std::int64_t rate = 0;
  for (const bool joined : {false, true}) {
    if (joined && planes.spreads() == 1) break;
    const auto network = root_network_of(graph, widths_of(graph, joined ? &planes : nullptr), inward, root.value());
    if (!network) return std::nullopt;
    rate = network->rate;
    auto found = LowTreeSearch(*network, planes.spreads() == 1 ? 1 : 2).run();
    if (!found || (best && found->height >= best->height)) continue;
    best = std::move(found);
    is_spread = joined;
  }
  if (!best) return std::nullopt;
  std::int64_t sum = 0;
  for (const GrowingTrees::Tree& tree : best->trees) sum += tree.weight;
  const auto parts = static_cast<std::int64_t>(is_spread ? planes.spreads() : 1);
  std::vector<ProgramTree> images;
  for (const GrowingTrees::Tree& tree : best->trees) {
    const Rational share = make_rational(tree.weight, sum) / parts;
    std::vector<std::uint32_t> edges = edges_of(tree, inward);
    if (!is_spread) {
      images.push_back({root.value(), inward, share, std::move(edges), {}});
      continue;
    }
    for (std::vector<std::uint32_t>& image : planes.spread(edges)) {
      images.push_back({root.value(), inward, share, std::move(image), {}});
    }
  }
  Forest forest = whole_forest(topology, graph, images, 1 / (Rational(rate) * graph.unit));
  return inward ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

}  // namespace espalier
