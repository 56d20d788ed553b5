#include "topology/analysis/flow_network.h"

#include <numeric>
#include <utility>

namespace espalier {
namespace {

/// The greatest common divisor of all link and backplane rates.
std::int64_t common_unit(const Topology& topology) {
  std::int64_t unit = 0;
  for (const Link& link : topology.links()) unit = std::gcd(unit, link.bandwidth().bytes_per_second);
  for (const Node& node : topology.nodes()) unit = std::gcd(unit, node.bandwidth.bytes_per_second);
  return unit == 0 ? 1 : unit;
}

/// The sum of some links' rates.
__int128 rate_of(const Topology& topology, std::span<const LinkId> links) {
  __int128 sum = 0;
  for (const LinkId link : links) sum += topology.link(link).bandwidth().bytes_per_second;
  return sum;
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
    const std::uint32_t source = node.must_not_relay() ? next_vertex() : vertex;
    if (node.is_rank) {
      rank_vertices_.push_back(vertex);
      source_vertices_.push_back(source);
    }
    const std::int64_t backplane = node.bandwidth.bytes_per_second;
    __int128 in = rate_of(topology, topology.in_links(NodeId(i)));
    __int128 out = rate_of(topology, topology.out_links(NodeId(i)));
    if (direction == Direction::reversed) std::swap(in, out);
    const bool is_shared = node.is_rank && backplane > 0 && backplane < in + out;
    const bool limits_in = is_shared || (backplane > 0 && backplane < in);
    const bool limits_out = is_shared || (backplane > 0 && backplane < out);
    entries.push_back(node.is_rank && limits_in ? next_vertex() : vertex);
    exits.push_back(limits_out && (node.is_rank || limits_in) ? next_vertex() : source);
    const std::int64_t capacity = backplane / capacity_unit_;
    if (entries[i] != vertex) backplanes.push_back({entries[i], vertex, capacity, LinkId()});
    if (exits[i] != source) backplanes.push_back({source, exits[i], capacity, LinkId()});
  }
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    const NodeId from = direction == Direction::forward ? link.tail : link.head;
    const NodeId to = direction == Direction::forward ? link.head : link.tail;
    arcs_.push_back(
        {exits[from.index()], entries[to.index()], link.bandwidth().bytes_per_second / capacity_unit_, LinkId(i)});
  }
  arcs_.insert(arcs_.end(), backplanes.begin(), backplanes.end());
  index();
}

FlowNetwork::FlowNetwork(std::size_t vertex_count, std::vector<FlowArc> arcs, std::vector<std::uint32_t> rank_vertices)
    : vertex_count_(vertex_count),
      arcs_(std::move(arcs)),
      rank_vertices_(std::move(rank_vertices)),
      source_vertices_(rank_vertices_) {
  index();
}

void FlowNetwork::index() {
  rank_at_.resize(vertex_count_);
  for (std::size_t rank = 0; rank < rank_vertices_.size(); ++rank) {
    rank_at_[rank_vertices_[rank]] = rank_at_[source_vertices_[rank]] = Rank(rank);
  }
  out_.resize(vertex_count_);
  in_.resize(vertex_count_);
  for (std::uint32_t arc = 0; arc < arcs_.size(); ++arc) {
    out_[arcs_[arc].tail].push_back(arc);
    in_[arcs_[arc].head].push_back(arc);
  }
}

FlowNetwork FlowNetwork::with_capacities(std::span<const std::int64_t> capacities) const {
  FlowNetwork changed = *this;
  for (std::size_t arc = 0; arc < capacities.size(); ++arc) changed.arcs_[arc].capacity = capacities[arc];
  return changed;
}

}  // namespace espalier
