#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include <array>
#include <cstdint>
#include <string_view>

#include "topology/topology.h"

namespace espalier {

/// What a link or a way between two ranks is: the fabric that joins GPUs inside a machine (NVLink, xGMI), PCIe and the
/// sockets' links, or the network between machines.
enum class LinkKind : std::uint8_t { fabric, pcie, network };
inline constexpr std::array all_link_kinds = {LinkKind::fabric, LinkKind::pcie, LinkKind::network};
/// "fabric", "pcie", "network".
std::string_view to_string(LinkKind kind);

/// Whether a node is a GPU that takes no part: no communication library sends anything through it.
inline bool is_idle_gpu(const Node& node) { return node.kind == NodeKind::gpu && !node.is_rank; }
/// Whether such a node is at an end of a link.
bool is_idle(const Topology& topology, LinkId link);

/// What a link is: a cable at a NIC's far side is network and the one to its host pcie; a class with nvlink or xgmi in
/// its name is fabric; what has a PCIe switch or a processor at an end is pcie, and so is a class with that name. Of
/// the rest, what joins two switches that say no host or two nodes of different hosts is network, all else fabric.
LinkKind kind_of(const Topology& topology, LinkId link);

/// The NVLinks that a link stands for: those that lead from the same GPU may be written as one.
struct NvLinks {
  std::int64_t count = 0;  ///< 0: it is none of a class "nvlink1" to "nvlink5", or not a whole number of them.
  Bandwidth each;
};
/// Source: NVIDIA's white papers of P100, V100, A100, H100 and Blackwell.
NvLinks nvlinks_of(const Link& link);

}  // namespace espalier
