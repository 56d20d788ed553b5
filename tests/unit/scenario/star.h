#pragma once

#include <string>

#include "topology/topology_builder.h"

namespace espalier::scenario::test {

/// Ranks r0, r1, ... around one switch, 1 GB/s each way, 1 us per link.
inline Topology star(std::size_t ranks) {
  TopologyBuilder builder;
  const Wire wire{.bandwidth = {1'000'000'000}, .latency = {1'000'000}, .link_class = ""};
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "hub");
  for (std::size_t i = 0; i < ranks; ++i) builder.cable(builder.rank("r" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("star");
}

/// Ranks r0, r1, ... in a ring of cables, 1 GB/s each way, 1 us per link.
inline Topology ring(std::size_t ranks) {
  TopologyBuilder builder;
  const Wire wire{.bandwidth = {1'000'000'000}, .latency = {1'000'000}, .link_class = ""};
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < ranks; ++i) nodes.push_back(builder.rank("r" + std::to_string(i)));
  for (std::size_t i = 0; i < ranks; ++i) builder.cable(nodes[i], nodes[(i + 1) % ranks], wire);
  return *std::move(builder).build("ring");
}

}  // namespace espalier::scenario::test
