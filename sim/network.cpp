#include "sim/network.h"

namespace espalier::sim {

Network::Network(const Topology& topology)
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
}

std::uint32_t Network::add_resource(NodeId node, Bandwidth rate) {
  resources_.push_back({rate.bytes_per_second, 0});
  nodes_.push_back(node);
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

}  // namespace espalier::sim
