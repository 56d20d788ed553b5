#pragma once

// Tested by: tests/unit/schedule/trees/tree_schedule_test.cpp

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
  std::vector<LinkId> links;  ///< In the direction of the data: parent to child in an out-tree, back in an in-tree.
};

/// A spanning out-tree (data flows from the root) or in-tree (data flows to it) with a weight: how many units it
/// carries.
struct Arborescence {
  Rank root;
  std::int64_t weight = 1;
  std::vector<TreeEdge> edges;  ///< Out-tree: every edge after the one that enters its parent. In-tree: the same order.
};

/// Trees and what they are for. Weights are relative: the builder finds the units. Where every rank is a root, the
/// weights of the roots' trees must have sums in the ratio of the ranks' shares: the same sum where shards are equal.
struct Forest {
  std::vector<Arborescence> in_trees;   ///< reduce, reduce_scatter, and the first half of all_reduce.
  std::vector<Arborescence> out_trees;  ///< broadcast, all_gather, scatter, and the second half of all_reduce.
  /// Switches that trees may have as inner nodes, numbered on from the ranks as in Schedule::relays; all_reduce may be
  /// rooted at them too. In-trees of collectives that reduce add at them, out-trees copy.
  std::vector<NodeId> relays;
};

/// What alone makes a schedule of weighted trees; ring (trees that are paths), tree and packing planners all use it.
///
/// - all_gather, broadcast: out-trees; reduce_scatter, reduce: in-trees. Each tree carries its share of its root's
/// part.
/// - scatter: out-trees of the root, gather: in-trees of the root, all_to_all and send_recv: out-trees of every rank.
///   Each part travels only along the path between its two ends, cut over the trees by weight; neighbouring slices that
///   take one edge share a transfer, but in an all_to_all of 64 ranks or more. These trees need not span: they reach
///   the ranks that they serve.
/// - all_reduce: both; the trees of one root are cut against each other so that each slice is reduced along one
///   in-tree and broadcast along one out-tree of that root. A rank without trees is the root of nothing.
///
/// Every tree gets a channel of its own. Transfers come in steps, all trees interleaved: in out-trees breadth first, in
/// in-trees as soon as everything below has arrived; within a step, transfers to the highest subtrees first and equal
/// ones rotated by rank, so that flat trees of many roots do not all meet at one rank, and those of one parent
/// together, so that what has to wait for all of them does not wait for all else. A single rank needs no trees and
/// gets an empty schedule.
/// Errors: invalid_input when a tree is not an arborescence or does not reach the ranks it must, when weights of the
/// roots differ where they must not, or when trees are missing; too_large past max_units, max_slices or max_transfers.
/// Cost: linear in the edges of all trees, and for parts on paths in the lengths of the paths.
Result<Schedule> schedule_from_trees(const Collective& collective, const Topology& topology, std::string algorithm,
                                     const Forest& forest);

/// The trees that a schedule runs over, each of weight 1: what a channel copies where that is an out-tree that spans
/// all ranks, what it reduces where that is an in-tree. Channels of other shapes are left out, and relays' too.
/// Requires: a schedule whose structure is right (rules S1-S3). Cost: linear in transfers.
Forest spanning_trees(const Schedule& schedule);

/// A forest of equal sums with the weights of every root's trees multiplied by its share, those of no share left out:
/// how a planner that knows nothing of shares plans them. Nothing changes where shards are equal, one rank is the
/// root or blocks go from every rank to every rank. Requires: roots in range. Errors: too_large when a weight would
/// pass max_units.
Result<Forest> in_proportion(Forest forest, const Collective& collective);

}  // namespace espalier
