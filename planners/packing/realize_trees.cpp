#include "planners/packing/realize_trees.h"

#include <algorithm>
#include <numeric>

namespace espalier::planners {
namespace {

/// One tree cut at every place where one of its edges changes its path.
void realize(const FlowNetwork& network, CapacityGraph& graph, const Arborescence& tree,
             std::vector<Arborescence>& realized) {
  std::vector<std::vector<PathShare>> paths;
  for (const TreeEdge& edge : tree.edges) {
    const std::uint32_t id = graph.find_or_add(network.vertex_of(edge.parent), network.vertex_of(edge.child));
    paths.push_back(graph.take(id, tree.weight));
  }
  for (std::int64_t left = tree.weight; left > 0;) {
    std::int64_t weight = left;
    for (const auto& shares : paths) weight = std::min(weight, shares.back().amount);
    Arborescence piece{tree.root, weight, {}};
    for (std::size_t i = 0; i < paths.size(); ++i) {
      PathShare& share = paths[i].back();
      piece.edges.push_back({tree.edges[i].parent, tree.edges[i].child, links_along(network, share.arcs)});
      share.amount -= weight;
      if (share.amount == 0) paths[i].pop_back();
    }
    realized.push_back(std::move(piece));
    left -= weight;
  }
}

}  // namespace

void reduce_weights(std::vector<Arborescence>& trees) {
  std::int64_t common = 0;
  for (const Arborescence& tree : trees) common = std::gcd(common, tree.weight);
  for (Arborescence& tree : trees) tree.weight /= common;
}

std::vector<LinkId> links_along(const FlowNetwork& network, std::span<const std::uint32_t> path) {
  std::vector<std::uint32_t> kept;  // without the loops
  for (const std::uint32_t arc : path) {
    kept.push_back(arc);
    const auto tail_of = [&](std::uint32_t earlier) { return network.arcs()[earlier].tail; };
    kept.erase(std::ranges::find(kept, network.arcs()[arc].head, tail_of), kept.end());
  }
  std::vector<LinkId> links;
  for (const std::uint32_t arc : kept) {
    if (!network.arcs()[arc].link.is_none()) links.push_back(network.arcs()[arc].link);
  }
  if (network.direction() == Direction::reversed) std::reverse(links.begin(), links.end());
  return links;
}

Arborescence over_links(const FlowNetwork& network, const ParentTree& tree) {
  const std::uint32_t root = tree.root();
  std::vector<std::vector<std::uint32_t>> children(tree.parent.size());
  for (const std::uint32_t rank : tree.members) {
    if (rank != root) children[tree.parent[rank]].push_back(rank);
  }
  Arborescence result{Rank(root), tree.weight, {}};
  std::vector<std::uint32_t> reached = {root};
  for (std::size_t at = 0; at < reached.size(); ++at) {
    for (const std::uint32_t child : children[reached[at]]) {
      result.edges.push_back({Rank(reached[at]), Rank(child), links_along(network, tree.path[child])});
      reached.push_back(child);
    }
  }
  return result;
}

std::vector<RankEdge> rank_edges(const FlowNetwork& network, const CapacityGraph& graph) {
  std::vector<RankEdge> edges;
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
    const CapacityGraph::Edge& edge = graph.edge(id);
    if (edge.capacity == 0) continue;
    edges.push_back({network.rank_at(edge.tail).value(), network.rank_at(edge.head).value(), edge.capacity});
  }
  return edges;
}

std::vector<Arborescence> realize_trees(const FlowNetwork& network, CapacityGraph& graph,
                                        std::span<const Arborescence> trees) {
  std::vector<Arborescence> realized;
  for (const Arborescence& tree : trees) realize(network, graph, tree, realized);
  return realized;
}

}  // namespace espalier::planners
