#include "planners/graph/path_search.h"

#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>

#include "base/random.h"
#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier::planners {
namespace {

/// Boost's distances from a node past no other ranks, or, `through_ranks`, past any.
std::vector<std::int64_t> distances_by_boost(const ResourceGraph& graph, const std::vector<std::int64_t>& lengths,
                                             std::uint32_t source, bool through_ranks) {
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property,
                                      boost::property<boost::edge_weight_t, std::int64_t>>;
  Graph copy(graph.node_ranks.size());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const std::uint32_t tail = graph.edges[e].tail;
    const bool is_other_rank = tail != source && graph.node_ranks[tail] != ResourceGraph::no_rank;
    if (through_ranks || !is_other_rank) add_edge(tail, graph.edges[e].head, lengths[e], copy);
  }
  std::vector<std::int64_t> distances(graph.node_ranks.size());
  const auto index = get(boost::vertex_index, copy);
  boost::dijkstra_shortest_paths(copy, source,
                                 boost::distance_map(boost::make_iterator_property_map(distances.begin(), index)));
  return distances;
}

TEST(PathSearch, FindsBoostsDistances) {
  for (const Topology& topology : {*generate_torus({{4, 4}, {}}), *generate_rail_boxes({.boxes = 3, .spines = 2})}) {
    const ResourceGraph graph = make_resource_graph(topology, false);
    Random random(9);
    std::vector<std::int64_t> lengths;
    while (lengths.size() < graph.edges.size()) lengths.push_back(random.between(0, 6));
    for (const bool through_ranks : {false, true}) {
      for (const std::uint32_t source : graph.rank_nodes) {
        const ShortestPaths<std::int64_t> paths(graph, lengths, source, through_ranks);
        const std::vector<std::int64_t> expected = distances_by_boost(graph, lengths, source, through_ranks);
        for (const std::uint32_t node : graph.rank_nodes) {
          if (node == source) continue;
          ASSERT_EQ(paths.has_path(node), expected[node] != std::numeric_limits<std::int64_t>::max());
          if (!paths.has_path(node)) continue;
          EXPECT_EQ(paths.distance(node), expected[node]);
          if (through_ranks) continue;
          std::int64_t length = 0;
          for (const std::uint32_t e : path_from(graph, paths.entering_edge(), node, false)) length += lengths[e];
          EXPECT_EQ(length, expected[node]);
        }
      }
    }
  }
}

/// Two paths of length 2 from a to b: over switch s in two edges, straight in one.
TEST(PathSearch, TakesTheFewestEdgesOfEqualLengths) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  const NodeId s = builder.forwarder(NodeKind::switch_node, "s");
  const Wire wire{{1'000'000'000}, {1'000'000}, {}};
  builder.cable(a, s, wire);
  builder.cable(s, b, wire);
  builder.cable(a, b, wire);
  const Topology topology = *std::move(builder).build("two paths");
  const ResourceGraph graph = make_resource_graph(topology, false);
  std::vector<std::int64_t> lengths;
  for (const ResourceGraph::Edge& edge : graph.edges) {
    lengths.push_back(edge.tail == s.value() || edge.head == s.value() ? 1 : 2);
  }
  const ShortestPaths<std::int64_t> paths(graph, lengths, a.value(), false);
  EXPECT_EQ(paths.distance(b.value()), 2);
  EXPECT_EQ(path_from(graph, paths.entering_edge(), b.value(), false).size(), 1U);
}

}  // namespace
}  // namespace espalier::planners
