#include "sim/core/network.h"

#include <algorithm>

namespace espalier::sim {

Network::Network(const Topology& topology, const CopyEngines& engines)
    : link_count_(static_cast<std::uint32_t>(topology.link_count())),
      backplanes_(topology.node_count(), absent),
      reductions_(topology.node_count(), absent) {
  for (const Link& link : topology.links())
    resources_.push_back({link.bandwidth().bytes_per_second, link.latency.count});
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.nodes()[i];
    if (node.bandwidth.bytes_per_second > 0) backplanes_[i] = add_resource(NodeId(i), node.bandwidth);
    if (node.reduce_bandwidth.bytes_per_second > 0) reductions_[i] = add_resource(NodeId(i), node.reduce_bandwidth);
  }
  if (engines.per_rank > 0) add_engines(topology, engines);
}

void Network::add_engines(const Topology& topology, const CopyEngines& engines) {
  engines_per_rank_ = engines.per_rank;
  first_engine_ = static_cast<std::uint32_t>(resources_.size());
  engines_.assign(topology.node_count(), absent);
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    const NodeId node = topology.node_of(Rank(rank));
    Bandwidth rate = engines.rate;
    if (rate.bytes_per_second == 0) {
      for (const LinkId link : topology.out_links(node)) rate = std::max(rate, topology.link(link).bandwidth());
    }
    if (rate.bytes_per_second == 0) continue;  // a rank that cannot send
    engines_[node.index()] = static_cast<std::uint32_t>(resources_.size());
    for (std::uint32_t k = 0; k < engines.per_rank; ++k) add_resource(node, rate);
  }
}

std::uint32_t Network::add_resource(NodeId node, Bandwidth rate) {
  resources_.push_back({rate.bytes_per_second, 0});
  nodes_.push_back(node);
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

}  // namespace espalier::sim
