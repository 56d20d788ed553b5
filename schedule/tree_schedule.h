#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// One edge of an arborescence: parent to child over these links.
struct TreeEdge {
  Rank parent;
  Rank child;
  std::vector<LinkId>
      links;  ///< From the parent to the child for an out-tree, from the child to the parent for an in-tree.
};

/// A spanning out-tree (data flows from the root) or in-tree (data flows to it) with a weight: how many units it
/// carries.
struct Arborescence {
  Rank root;
  std::int64_t weight = 1;
  std::vector<TreeEdge> edges;  ///< Out-tree: every edge after the one that enters its parent. In-tree: the same order.
};

/// Trees and what they are for. Weights are relative: the builder finds the units. For the sharded collectives the
/// weights of every root's trees must have the same sum.
struct Forest {
  std::vector<Arborescence> in_trees;   ///< reduce, reduce_scatter, and the first half of all_reduce.
  std::vector<Arborescence> out_trees;  ///< broadcast, all_gather, scatter, and the second half of all_reduce.
};

/// The one way from weighted trees to a schedule; ring (trees that are paths), tree and packing planners all use it.
///
/// all_gather, broadcast: out_trees. reduce_scatter, reduce: in_trees. scatter, gather: out_trees or in_trees of the
/// root, each shard travelling only along the path between the root and its rank. all_reduce: both; the trees of one
/// root are cut against each other so that each slice is reduced along one in-tree and broadcast along one out-tree of
/// that root. Every tree gets a channel of its own. Transfers come in levels (breadth first), so small slices of all
/// trees start early. Errors: invalid_input when weights of the roots differ where they must not, or trees for the
/// collective are missing; too_large when the units pass 2^62.
Result<Schedule> schedule_from_trees(const Collective& collective, const Topology& topology, std::string algorithm,
                                     const Forest& forest);

}  // namespace espalier
