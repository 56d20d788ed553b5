#include "topology/boost_graph.h"

#include <gtest/gtest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/copy.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <vector>

#include "topology/analysis/max_flow.h"
#include "topology/generate/generate.h"
#include "topology/routes.h"

namespace espalier {
namespace {

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<Topology>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<Topology>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<Topology>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<Topology, LinkId, boost::edge_weight_t>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<Topology, LinkId, boost::edge_capacity_t>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<Topology, LinkId, boost::edge_name_t>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<Topology, std::uint32_t, boost::vertex_name_t>));

Topology random_topology(std::uint64_t seed) {
  RandomOptions options;
  options.ranks = 6;
  options.switches = 3;
  options.one_way = seed % 2 == 0;
  options.seed = seed;
  auto machine = generate_random(options);
  EXPECT_TRUE(machine) << machine.error().message;
  return std::move(*machine);
}

TEST(BoostGraph, TellsNodesAndLinksAsTheTopologyDoes) {
  const auto machine = generate_leaf_spine({});
  ASSERT_TRUE(machine);
  std::size_t incident = 0;
  for (auto [vertex, end] = vertices(*machine); vertex != end; ++vertex) {
    EXPECT_EQ(get(boost::vertex_name, *machine, *vertex), machine->node(NodeId(*vertex)).id);
    for (auto [edge, last] = out_edges(*vertex, *machine); edge != last; ++edge) {
      EXPECT_EQ(source(*edge, *machine), *vertex);
      ++incident;
    }
    EXPECT_EQ(degree(*vertex, *machine), out_degree(*vertex, *machine) + in_degree(*vertex, *machine));
  }
  EXPECT_EQ(incident, machine->link_count());
  const auto [first, last] = edges(*machine);
  EXPECT_EQ(static_cast<std::size_t>(std::distance(first, last)), machine->link_count());
}

/// Latencies that Dijkstra's algorithm finds, as if every node relayed; the least latency of a route in the library.
TEST(BoostGraph, ShortestPathsAreTheRoutesOfLeastLatency) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Topology machine = random_topology(seed);
    for (std::uint32_t rank = 0; rank < machine.rank_count(); ++rank) {
      std::vector<std::int64_t> distance(machine.node_count());
      // Other ranks do not relay within a route: links that leave them do not count.
      const NodeId start = machine.node_of(Rank(rank));
      const auto may_be_used = [&](LinkId link) {
        const NodeId tail = machine.link(link).tail;
        return tail == start || machine.rank_of(tail).is_none();
      };
      const std::function<bool(LinkId)> filter = may_be_used;
      const boost::filtered_graph<Topology, std::function<bool(LinkId)>> usable(machine, filter);
      boost::dijkstra_shortest_paths(
          usable, start.value(),
          boost::distance_map(boost::make_iterator_property_map(distance.begin(), get(boost::vertex_index, machine))));
      RouteOptions least;
      least.size = {};
      const auto routes = routes_from(machine, Rank(rank), least);
      for (std::uint32_t other = 0; other < machine.rank_count(); ++other) {
        if (other == rank) continue;
        const std::int64_t found = distance[machine.node_of(Rank(other)).index()];
        EXPECT_EQ(found != std::numeric_limits<std::int64_t>::max(), routes[other].has_value());
        if (!routes[other]) continue;
        EXPECT_EQ(found, routes[other]->latency.count) << "seed " << seed;
      }
    }
  }
}

TEST(BoostGraph, OneStrongComponentWhereAllNodesReachEachOther) {
  const auto machine = generate_torus({});
  ASSERT_TRUE(machine);
  std::vector<int> component(machine->node_count());
  const auto map = boost::make_iterator_property_map(component.begin(), get(boost::vertex_index, *machine));
  EXPECT_EQ(boost::strong_components(*machine, map), 1);
}

/// An algorithm that changes its graph runs on a copy, of which the topology is the source.
TEST(BoostGraph, MaximumFlowOfACopyIsThatOfTheLibrary) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Network = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_capacity_t, std::int64_t,
                      boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Topology machine = random_topology(seed);
    Network network(machine.node_count());
    for (auto [edge, end] = edges(machine); edge != end; ++edge) {
      const auto forth = add_edge(source(*edge, machine), target(*edge, machine), network).first;
      const auto back = add_edge(target(*edge, machine), source(*edge, machine), network).first;
      put(boost::edge_capacity, network, forth, get(boost::edge_capacity, machine, *edge));
      put(boost::edge_capacity, network, back, std::int64_t{0});
      put(boost::edge_reverse, network, forth, back);
      put(boost::edge_reverse, network, back, forth);
    }
    const std::uint32_t from = machine.node_of(Rank(0)).value();
    const std::uint32_t to = machine.node_of(Rank(machine.rank_count() - 1)).value();
    MaxFlow<std::int64_t> own(machine.node_count());
    for (const Link& link : machine.links()) {
      own.add_arc(link.tail.value(), link.head.value(), link.bandwidth().bytes_per_second);
    }
    const std::vector<std::uint32_t> sources{from};
    const std::vector<std::uint32_t> sinks{to};
    EXPECT_EQ(boost::push_relabel_max_flow(network, from, to), own.run(sources, sinks)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace espalier
