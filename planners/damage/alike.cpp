#include "planners/damage/alike.h"

#include <string>
#include <tuple>
#include <utility>

#include "base/disjoint_sets.h"
#include "planners/symmetry/colored_graph.h"

namespace espalier::planners {
namespace {

using Color = std::tuple<int, std::string, std::int64_t, std::int64_t, std::int64_t>;

constexpr int node_colors = 0;
constexpr int even_cable = 100;    ///< Both directions have the same values.
constexpr int uneven_cable = 101;  ///< Joined to a vertex per direction.
constexpr int single_link = 102;

Color color_of(const Node& node, bool is_fixed) {
  const int flags = (is_fixed ? 1 : 0) + (node.is_rank ? 2 : 0) + (node.multicast ? 4 : 0) + (node.reduction ? 8 : 0) +
                    (node.must_not_relay() ? 16 : 0);
  return {node_colors, std::to_string(flags), static_cast<std::int64_t>(node.kind), node.bandwidth.bytes_per_second,
          node.reduce_bandwidth.bytes_per_second};
}

Color color_of(const Link& link, int what) {
  // All that there are; the rate counts as it can be reached.
  const auto& [nominal, latency, overhead, efficiency_ppm, link_class] = link.values();
  return {what, link_class, link.bandwidth().bytes_per_second, latency.count, overhead.count};
}

/// The network as a graph whose vertices have colors: one per node and cable, and one per link of an uneven cable.
class NetworkGraph {
 public:
  void add_node(const Node& node, bool is_fixed) { add_vertex(color_of(node, is_fixed)); }

  void add_cable(const Topology& topology, const Cable& cable) {
    const Link& there = topology.link(cable.there);
    if (cable.back.is_none()) {
      join(there, add_vertex(color_of(there, single_link)));
      return;
    }
    const Link& back = topology.link(cable.back);
    if (color_of(there, even_cable) == color_of(back, even_cable)) {
      const std::uint32_t vertex = add_vertex(color_of(there, even_cable));
      join(there, vertex);
      join(back, vertex);
      return;
    }
    const std::uint32_t vertex = add_vertex({uneven_cable, "", 0, 0, 0});
    uneven_.emplace_back(vertex, cable);
  }

  /// After all cables, so that these keep their places.
  void add_directions(const Topology& topology) {
    for (const auto& [cable_vertex, cable] : uneven_) {
      for (const LinkId id : {cable.there, cable.back}) {
        const std::uint32_t vertex = add_vertex(color_of(topology.link(id), single_link));
        join(topology.link(id), vertex);
        arcs_.emplace_back(cable_vertex, vertex);
      }
    }
  }

  [[nodiscard]] DisjointSets find_orbits() const {
    const auto numbers = number_keys(colors_, 0);
    ColoredGraph graph{{}, arcs_};
    for (const Color& color : colors_) graph.colors.push_back(numbers.at(color));
    DisjointSets sets(colors_.size());
    visit_automorphisms(graph, [&](std::span<const std::uint32_t> automorphism) {
      for (std::uint32_t i = 0; i < automorphism.size(); ++i) sets.join(i, automorphism[i]);
    });
    return sets;
  }

 private:
  std::uint32_t add_vertex(Color color) {
    colors_.push_back(std::move(color));
    return static_cast<std::uint32_t>(colors_.size() - 1);
  }
  void join(const Link& link, std::uint32_t vertex) {
    arcs_.emplace_back(link.tail.value(), vertex);
    arcs_.emplace_back(vertex, link.head.value());
  }

  std::vector<Color> colors_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> arcs_;
  std::vector<std::pair<std::uint32_t, Cable>> uneven_;
};

}  // namespace

Alike find_alike(const Topology& topology, std::span<const Cable> cables, Rank fixed) {
  NetworkGraph graph;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    graph.add_node(topology.node(NodeId(i)), !fixed.is_none() && topology.node_of(fixed) == NodeId(i));
  }
  for (const Cable& cable : cables) graph.add_cable(topology, cable);
  graph.add_directions(topology);
  DisjointSets orbits = graph.find_orbits();
  Alike alike;
  const auto nodes = static_cast<std::uint32_t>(topology.node_count());
  for (std::uint32_t i = 0; i < nodes; ++i) alike.of_node.push_back(orbits.find(i));
  for (std::uint32_t i = 0; i < cables.size(); ++i) alike.of_cable.push_back(orbits.find(nodes + i));
  return alike;
}

}  // namespace espalier::planners
