#pragma once

#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier {

/// The middle of a node in a drawing, in pixels.
struct DrawnNode {
  double x = 0;
  double y = 0;
  bool in_row = true;  ///< Not in a circle.
};

/// A machine's frame.
struct DrawnHost {
  std::string name;
  double left = 0, top = 0, width = 0, height = 0;
};

struct TopologyLayout {
  std::vector<DrawnNode> nodes;  ///< By node.
  std::vector<DrawnHost> hosts;  ///< Those with a name.
  double width = 0, height = 0;
};

/// Places nodes in rows: switches that belong to no machine on top, farther from the machines the higher; below them
/// the machines side by side, each with NICs, CPUs, PCIe switches, ranks and its own switches. Ranks that nothing but
/// links between them joins stand in a circle. Cost: O(links log nodes).
TopologyLayout lay_out(const Topology& topology);

}  // namespace espalier
