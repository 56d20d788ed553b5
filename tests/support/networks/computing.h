#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "topology/topology.h"

namespace espalier::test {

/// The same network with switches that copy and add as `flags_of(switch)` says, a pair of multicast and reduction.
template <class FlagsOf>
Topology with_computing_switches(const Topology& topology, const FlagsOf& flags_of) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) {
    if (node.kind == NodeKind::switch_node) std::tie(node.multicast, node.reduction) = flags_of(node);
  }
  auto made = Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
  ESPALIER_CHECK(made.has_value(), "switches may compute");
  return std::move(*made);
}

/// All switches copy and add.
inline Topology with_computing_switches(const Topology& topology) {
  return with_computing_switches(topology, [](const Node&) { return std::pair(true, true); });
}

}  // namespace espalier::test
