#include "planners/damage/alike.h"

#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/disjoint_sets.h"
#include "planners/symmetric/name_shifts.h"
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

  /// The network's nodes come first, then its cables.
  [[nodiscard]] ColoredGraph graph() const {
    const auto numbers = number_keys(colors_, 0);
    ColoredGraph made{{}, arcs_};
    for (const Color& color : colors_) made.colors.push_back(numbers.at(color));
    return made;
  }

  [[nodiscard]] static DisjointSets find_orbits(const ColoredGraph& graph) {
    DisjointSets sets(graph.colors.size());
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

/// The orbits of nodes and cables under the automorphisms that names propose.
DisjointSets find_orbits_by_names(const Topology& topology, std::span<const Cable> cables) {
  const std::size_t nodes = topology.node_count();
  DisjointSets sets(nodes + cables.size());
  std::unordered_map<std::uint64_t, std::size_t> cable_between;
  const auto between = [](std::uint32_t tail, std::uint32_t head) { return std::uint64_t{tail} << 32U | head; };
  for (std::size_t i = 0; i < cables.size(); ++i) {
    for (const LinkId id : {cables[i].there, cables[i].back}) {
      if (!id.is_none()) cable_between[between(topology.link(id).tail.value(), topology.link(id).head.value())] = i;
    }
  }
  for (const Permutation& automorphism : find_name_automorphisms(topology)) {
    for (std::uint32_t i = 0; i < nodes; ++i) sets.join(i, automorphism[i]);
    for (std::size_t i = 0; i < cables.size(); ++i) {
      const Link& link = topology.link(cables[i].there);
      const std::size_t image =
          cable_between.at(between(automorphism[link.tail.index()], automorphism[link.head.index()]));
      sets.join(static_cast<std::uint32_t>(nodes + i), static_cast<std::uint32_t>(nodes + image));
    }
  }
  return sets;
}

std::size_t count_sets(DisjointSets& sets, std::size_t members) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < members; ++i) {
    if (sets.find(i) == i) ++count;
  }
  return count;
}

/// The orbits of all automorphisms. Those that names propose are all where colors tell no more vertices apart, and then
/// nothing is searched.
DisjointSets find_all_orbits(const NetworkGraph& network, const Topology& topology, std::span<const Cable> cables,
                             Rank fixed) {
  const ColoredGraph graph = network.graph();
  if (fixed.is_none()) {
    const std::size_t members = topology.node_count() + cables.size();
    DisjointSets by_names = find_orbits_by_names(topology, cables);
    if (count_sets(by_names, members) == count_refined_colors(graph, members)) return by_names;
  }
  return NetworkGraph::find_orbits(graph);
}

}  // namespace

Alike find_alike(const Topology& topology, std::span<const Cable> cables, Rank fixed) {
  NetworkGraph graph;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    graph.add_node(topology.node(NodeId(i)), !fixed.is_none() && topology.node_of(fixed) == NodeId(i));
  }
  for (const Cable& cable : cables) graph.add_cable(topology, cable);
  graph.add_directions(topology);
  DisjointSets orbits = find_all_orbits(graph, topology, cables, fixed);
  Alike alike;
  const auto nodes = static_cast<std::uint32_t>(topology.node_count());
  for (std::uint32_t i = 0; i < nodes; ++i) alike.of_node.push_back(orbits.find(i));
  for (std::uint32_t i = 0; i < cables.size(); ++i) alike.of_cable.push_back(orbits.find(nodes + i));
  return alike;
}

}  // namespace espalier::planners
