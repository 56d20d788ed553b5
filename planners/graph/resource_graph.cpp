#include "planners/graph/resource_graph.h"

#include <algorithm>
#include <map>
#include <utility>

namespace espalier::planners {

namespace {

void add_edges(const Topology& topology, ResourceGraph& graph, std::vector<BigInteger>& edge_capacity) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> edge_of;
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const auto [at, is_new] =
        edge_of.try_emplace({link.tail.value(), link.head.value()}, static_cast<std::uint32_t>(graph.edges.size()));
    if (is_new) {
      graph.edges.push_back({link.tail.value(), link.head.value(), 0, {}, {}});
      graph.out_edges[link.tail.index()].push_back(at->second);
      graph.in_edges[link.head.index()].push_back(at->second);
      edge_capacity.emplace_back(0);
    }
    edge_capacity[at->second] += link.bandwidth().bytes_per_second;
    graph.edges[at->second].links.emplace_back(i);
  }
  graph.mirrored = true;
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const auto mirror = edge_of.find({graph.edges[e].head, graph.edges[e].tail});
    if (mirror == edge_of.end() || edge_capacity[mirror->second] != edge_capacity[e]) {
      graph.mirrored = false;
      return;
    }
    graph.edges[e].mirror = mirror->second;
  }
}

/// A backplane counts what passes through a forwarding node once, and what enters and what leaves a rank.
void add_backplanes(const Topology& topology, ResourceGraph& graph) {
  graph.node_resources.assign(topology.node_count(), ResourceGraph::no_resource);
  for (std::uint32_t v = 0; v < topology.node_count(); ++v) {
    const Node& node = topology.node(NodeId(v));
    if (node.bandwidth.bytes_per_second == 0) continue;
    const auto resource = static_cast<std::uint32_t>(graph.capacity.size());
    graph.capacity.emplace_back(node.bandwidth.bytes_per_second);
    graph.node_resources[v] = resource;
    for (ResourceGraph::Edge& edge : graph.edges) {
      if (edge.head == v || (edge.tail == v && node.is_rank)) edge.resources.push_back(resource);
    }
  }
}

}  // namespace

ResourceGraph make_resource_graph(const Topology& topology, bool fold) {
  ResourceGraph graph;
  graph.out_edges.resize(topology.node_count());
  graph.in_edges.resize(topology.node_count());
  std::vector<BigInteger> edge_capacity;
  add_edges(topology, graph, edge_capacity);
  graph.mirrored = graph.mirrored && fold;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    ResourceGraph::Edge& edge = graph.edges[e];
    if (graph.mirrored && edge.mirror < e) {
      edge.resources.push_back(graph.edges[edge.mirror].resources.front());
    } else {
      edge.resources.push_back(static_cast<std::uint32_t>(graph.capacity.size()));
      graph.capacity.emplace_back(graph.mirrored ? BigInteger(2 * edge_capacity[e]) : edge_capacity[e]);
    }
  }
  add_backplanes(topology, graph);

  graph.unit = 0;
  for (const BigInteger& capacity : graph.capacity) graph.unit = gcd(graph.unit, capacity);
  if (graph.unit == 0) graph.unit = 1;
  for (BigInteger& capacity : graph.capacity) capacity /= graph.unit;

  for (std::uint32_t r = 0; r < topology.rank_count(); ++r)
    graph.rank_nodes.push_back(topology.node_of(Rank(r)).value());
  graph.node_ranks.assign(topology.node_count(), ResourceGraph::no_rank);
  for (std::uint32_t r = 0; r < graph.rank_count(); ++r) graph.node_ranks[graph.rank_nodes[r]] = r;
  for (const Node& node : topology.nodes()) graph.is_dead_end.push_back(node.must_not_relay());
  if (!topology.first_relaying().is_none()) graph.first_relaying = topology.first_relaying().value();
  graph.has_dead_ends = !topology.first_not_relaying().is_none();
  return graph;
}

std::vector<RankPath> split_paths(const ResourceGraph& graph, std::span<const std::uint32_t> edges) {
  std::vector<RankPath> paths;
  bool begins = true;
  for (const std::uint32_t e : edges) {
    if (begins) paths.push_back({graph.node_ranks[graph.edges[e].tail], 0, {}});
    paths.back().edges.push_back(e);
    paths.back().to = graph.node_ranks[graph.edges[e].head];
    begins = paths.back().to != ResourceGraph::no_rank;
  }
  return paths;
}

std::vector<std::uint32_t> path_from(const ResourceGraph& graph, const std::vector<std::uint32_t>& next_edge,
                                     std::uint32_t node, bool towards) {
  std::vector<std::uint32_t> path;
  do {
    path.push_back(next_edge[node]);
    node = towards ? graph.edges[path.back()].head : graph.edges[path.back()].tail;
  } while (graph.node_ranks[node] == ResourceGraph::no_rank);
  if (!towards) std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace espalier::planners
