#pragma once

// Tested by: tests/unit/topology/draw/topology_svg_test.cpp

#include <cstdint>
#include <string>
#include <vector>

#include "topology/draw/drawn_use.h"
#include "topology/topology.h"

namespace espalier {

/// A machine, or switches with the parts that hang below them.
struct NetworkPart {
  std::string name;  ///< Of the machine, or what all names in it begin with ("pod0"), else those of its own nodes.
  std::vector<std::size_t> nodes;     ///< Its own, by number.
  std::vector<std::size_t> children;  ///< Parts, in the order of their first nodes.
  bool is_machine = false;
  std::uint64_t structure = 0;  ///< Equal in parts that have the same nodes and links, and lead to like nodes.
  std::uint64_t likeness = 0;   ///< Equal where load and side of the cut are the same, too.
  double load = 0;              ///< Of the busiest link in it or of it.
  std::size_t parent = 0;       ///< What it hangs below; of the root, itself.
};

/// A network as a tree: machines, and ranks outside machines, are its leaves; switches are above what they join. Links
/// between parts of one level are not in it.
struct PartTree {
  std::vector<NetworkPart> parts;
  std::size_t root = 0;
  std::vector<std::size_t> part_of;           ///< By node.
  std::vector<std::uint64_t> likeness;        ///< By node: equal in those that may be drawn as one.
  std::vector<std::uint64_t> loose_likeness;  ///< The same, whichever nodes of its machine it is joined with.
};

/// Cost: O(links log links).
PartTree make_part_tree(const Topology& topology, const DrawnUse& use);

/// All nodes of a part. Of two parts with the same likeness they correspond one by one.
std::vector<std::size_t> nodes_in_order(const PartTree& tree, std::size_t part);

}  // namespace espalier
