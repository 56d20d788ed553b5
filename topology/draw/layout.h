#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <string>
#include <vector>

#include "topology/draw/drawn_use.h"
#include "topology/topology.h"

namespace espalier {

/// The width of every drawing, in pixels, at most.
inline constexpr double max_drawing_width = 1200;

/// A box with a name: a node, or several that are drawn as one.
struct DrawnNode {
  std::vector<std::size_t> nodes;  ///< Itself, and those of its row that are drawn as it.
  std::vector<std::string> names;  ///< Of these; of parts where it stands for unlike ones.
  std::string label;
  double x = 0, y = 0;  ///< Of its middle, in pixels.
  double width = 0;
  bool in_row = true;      ///< Not in a circle.
  bool is_others = false;  ///< Stands for parts that are not alike.
};

/// A frame round a machine, or round switches and what hangs below them.
struct DrawnFrame {
  std::string name;
  std::vector<std::string> like;  ///< Names of those that it stands for, beside itself.
  std::string caption;
  double left = 0, top = 0, width = 0, height = 0;
};

struct TopologyLayout {
  std::string title;
  std::vector<DrawnNode> nodes;
  std::vector<DrawnFrame> frames;     ///< Inner ones before those round them.
  std::vector<std::size_t> drawn_as;  ///< By node of the topology: which of `nodes` it is drawn as.
  std::vector<bool> leads_to_like;    ///< By link: from one of several that are drawn as one to another of them.
  double width = 0, height = 0;
};

/// The height of a drawn node.
inline constexpr double drawn_node_height = 24;

/// Places nodes in rows: switches that belong to no machine above what they join; below them the machines side by side,
/// each with NICs, CPUs, PCIe switches, ranks and its own switches. Ranks that nothing but links between them joins
/// stand in a circle. What does not fit in the width is folded: of parts that are alike (part_tree.h) one is drawn,
/// with how many and which are like it. What differs from most is drawn itself, as far as there is room; the rest are
/// "others". Cost: O(links log links).
TopologyLayout lay_out(const Topology& topology, const DrawnUse& use = {});

}  // namespace espalier
