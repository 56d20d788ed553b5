#include "planners/symmetry/network_graph.h"

#include <map>

namespace espalier::planners {
namespace {

constexpr int node_colors = 0;
constexpr int even_cable = 100;    ///< Both directions have the same values.
constexpr int uneven_cable = 101;  ///< Joined to a vertex per direction.
constexpr int single_link = 102;
constexpr int host_color = 103;  ///< Joined to all nodes of the host.

}  // namespace

NetworkGraph::NetworkGraph(const Topology& topology, std::span<const Cable> cables,
                           std::span<const std::int64_t> marks) {
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Rank rank = topology.rank_of(NodeId(i));
    add_vertex(color_of(topology.node(NodeId(i)), rank.is_none() || marks.empty() ? 0 : marks[rank.index()]));
  }
  for (const Cable& cable : cables) add_cable(topology, cable);
  add_directions(topology);
  add_hosts(topology);
}

ColoredGraph NetworkGraph::graph() const {
  const auto numbers = number_keys(colors_, 0);
  ColoredGraph made{{}, arcs_};
  for (const Color& color : colors_) made.colors.push_back(numbers.at(color));
  return made;
}

NetworkGraph::Color NetworkGraph::color_of(const Node& node, std::int64_t mark) {
  const int flags =
      (node.is_rank ? 2 : 0) + (node.multicast ? 4 : 0) + (node.reduction ? 8 : 0) + (node.must_not_relay() ? 16 : 0);
  const std::string text = std::to_string(flags) + ":" + std::to_string(mark);
  return {node_colors, text, static_cast<std::int64_t>(node.kind), node.bandwidth.bytes_per_second,
          node.reduce_bandwidth.bytes_per_second};
}

NetworkGraph::Color NetworkGraph::color_of(const Link& link, int what) {
  // All that there are; the rate counts as it can be reached, whatever is reported.
  const auto& [nominal, latency, overhead, efficiency_ppm, link_class, reported] = link.values();
  return {what, link_class, link.bandwidth().bytes_per_second, latency.count, overhead.count};
}

std::uint32_t NetworkGraph::add_vertex(Color color) {
  colors_.push_back(std::move(color));
  return static_cast<std::uint32_t>(colors_.size() - 1);
}

void NetworkGraph::add_cable(const Topology& topology, const Cable& cable) {
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
void NetworkGraph::add_directions(const Topology& topology) {
  for (const auto& [cable_vertex, cable] : uneven_) {
    for (const LinkId id : {cable.there, cable.back}) {
      const std::uint32_t vertex = add_vertex(color_of(topology.link(id), single_link));
      join(topology.link(id), vertex);
      arcs_.emplace_back(cable_vertex, vertex);
    }
  }
}

void NetworkGraph::add_hosts(const Topology& topology) {
  std::map<std::string, std::uint32_t> hosts;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const std::string& host = topology.node(NodeId(i)).host;
    if (host.empty()) continue;
    const auto [known, is_new] = hosts.try_emplace(host, 0);
    if (is_new) known->second = add_vertex({host_color, "", 0, 0, 0});
    arcs_.emplace_back(known->second, static_cast<std::uint32_t>(i));
  }
}

void NetworkGraph::join(const Link& link, std::uint32_t vertex) {
  arcs_.emplace_back(link.tail.value(), vertex);
  arcs_.emplace_back(vertex, link.head.value());
}

}  // namespace espalier::planners
