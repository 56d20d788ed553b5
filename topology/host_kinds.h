#pragma once

// Tested by: tests/unit/topology/host_kinds_test.cpp

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace espalier {

class Topology;

/// Which machines of a network are of one kind: of nodes and links of the same kinds, numbers and rates.
struct HostKinds {
  std::unordered_map<std::string, std::uint32_t> of_host;  ///< By Node::host.
  std::vector<std::uint32_t> in_order;                     ///< Of the machines that have ranks, by their first ranks.
};

/// Cost: O(nodes + links).
HostKinds find_host_kinds(const Topology& topology);

}  // namespace espalier
