#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <cstddef>
#include <optional>
#include <string>

#include "topology/topology.h"

namespace espalier {

/// Machines box0, box1, ... that are alike: behind the nodes outside of them their nodes one box after the other, and
/// first of all links theirs in the same way, so that a group stands for them and numbers everything as it is.
struct LikeBoxes {
  std::string name;            ///< "box"
  std::size_t count = 0;       ///< Two or more.
  std::size_t first_node = 0;  ///< Of box 0.
  std::size_t nodes = 0;       ///< Of each.
  std::size_t links = 0;       ///< Of each: within it, and with what is outside of all boxes.

  /// What the ids of a box's nodes begin with: "box3."
  [[nodiscard]] std::string prefix(std::size_t box) const;
};

/// Nothing where nodes have other hosts, where nodes come after the boxes, or where boxes differ. Cost: O(nodes +
/// links).
std::optional<LikeBoxes> find_like_boxes(const Topology& topology);

}  // namespace espalier
