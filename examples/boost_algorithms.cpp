#include <espalier/topology.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/betweenness_centrality.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <limits>
#include <vector>

// Runs algorithms of the Boost Graph Library on a machine: how far the farthest node is in time, and through which node
// most of the quickest paths lead.
int main(int argc, char** argv) {
  using namespace espalier;
  const TopologyReading reading = read_topology_file(argc > 1 ? argv[1] : "configs/dgx-a100-x2.yaml");
  for (const Diagnostic& finding : reading.diagnostics) fmt::print(stderr, "{}", render(finding, false));
  if (!reading.topology) return 1;
  const Topology& machine = *reading.topology;

  const auto start = machine.node_of(Rank(0)).value();
  std::vector<std::int64_t> latencies(num_vertices(machine));
  const auto index = get(boost::vertex_index, machine);
  boost::dijkstra_shortest_paths(machine, start,
                                 boost::distance_map(boost::make_iterator_property_map(latencies.begin(), index)));
  const auto farthest = std::ranges::max_element(latencies) - latencies.begin();
  fmt::print("farthest from {}: {}, {:.2f} us\n", get(boost::vertex_name, machine, start),
             get(boost::vertex_name, machine, static_cast<boost_graph::Vertex>(farthest)),
             static_cast<double>(latencies[static_cast<std::size_t>(farthest)]) / 1e6);

  std::vector<double> centrality(num_vertices(machine));
  boost::brandes_betweenness_centrality(
      machine, boost::centrality_map(boost::make_iterator_property_map(centrality.begin(), index))
                   .vertex_index_map(index)
                   .weight_map(get(boost::edge_weight, machine)));
  const auto busiest = static_cast<boost_graph::Vertex>(std::ranges::max_element(centrality) - centrality.begin());
  fmt::print("on most of the quickest paths: {}\n", get(boost::vertex_name, machine, busiest));
}
