#pragma once

// Tested by: tests/unit/topology/analysis/affinity_test.cpp

#include <vector>

#include "topology/topology.h"

namespace espalier {

/// What a rank reaches inside its machine, over PCIe bridges and processors alone.
struct Affinity {
  Rank rank;
  std::vector<NodeId>
      nics;  ///< The nearest NICs, by the number of links, in node order; none: the fabric is not reached so.
  std::vector<NodeId>
      bridges;       ///< PCIe bridges and processors between the rank and the first of these NICs, in path order.
  NodeId processor;  ///< The nearest processor that is no rank, its NUMA node; none where there is none.
  std::vector<NodeId> fabric;  ///< Switches that these NICs are cabled to, in node order.
};

/// The affinity of every rank, in rank order.
/// Cost: a breadth-first search of a machine for each rank.
std::vector<Affinity> find_affinities(const Topology& topology);

}  // namespace espalier
