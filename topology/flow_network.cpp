#include "topology/flow_network.h"

#include <numeric>

namespace espalier {
namespace {

/// The greatest common divisor of all link and backplane rates.
std::int64_t common_unit(const Topology& topology) {
  std::int64_t unit = 0;
  for (const Link& link : topology.links()) unit = std::gcd(unit, link.bandwidth().bytes_per_second);
  for (const Node& node : topology.nodes()) unit = std::gcd(unit, node.bandwidth.bytes_per_second);
  return unit == 0 ? 1 : unit;
}

}  // namespace

FlowNetwork::FlowNetwork(const Topology& topology, Direction direction)
    : vertex_count_(topology.node_count()), capacity_unit_(common_unit(topology)), direction_(direction) {
  const auto next_vertex = [this] { return static_cast<std::uint32_t>(vertex_count_++); };
  std::vector<std::uint32_t> entries, exits;
  std::vector<FlowArc> backplanes;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const auto vertex = static_cast<std::uint32_t>(i);
    const Node& node = topology.node(NodeId(i));
    const std::int64_t backplane = node.bandwidth.bytes_per_second / capacity_unit_;
    rank_at_.push_back(topology.rank_of(NodeId(i)));
    if (node.is_rank) rank_vertices_.push_back(vertex);
    entries.push_back(node.is_rank && backplane > 0 ? next_vertex() : vertex);
    exits.push_back(backplane > 0 ? next_vertex() : vertex);
    if (entries[i] != vertex) backplanes.push_back({entries[i], vertex, backplane, LinkId()});
    if (exits[i] != vertex) backplanes.push_back({vertex, exits[i], backplane, LinkId()});
  }
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const NodeId from = direction == Direction::forward ? link.tail : link.head;
    const NodeId to = direction == Direction::forward ? link.head : link.tail;
    arcs_.push_back(
        {exits[from.index()], entries[to.index()], link.bandwidth().bytes_per_second / capacity_unit_, LinkId(i)});
  }
  arcs_.insert(arcs_.end(), backplanes.begin(), backplanes.end());
}

}  // namespace espalier
