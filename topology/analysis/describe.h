#pragma once

// Tested by: tests/unit/topology/analysis/describe_test.cpp

#include <cstddef>
#include <string>

#include "topology/topology.h"

namespace espalier {

struct DescribeOptions {
  std::size_t largest_matrix = 16;  ///< Ranks (or hosts) up to which the bandwidth between every two is shown.
  bool bisection = true;
};

/// What `espalier topo show` prints: nodes by kind, links by class, what leads out of each node, which NIC is near
/// which rank, the bandwidth between ranks (beyond `largest_matrix` ranks: from the first rank, and between hosts), the
/// bisection with its cut, and the warnings of `find_asymmetry`. ASCII as far as the names are; ends in a newline.
std::string describe_topology(const Topology& topology, const DescribeOptions& options = {});

}  // namespace espalier
