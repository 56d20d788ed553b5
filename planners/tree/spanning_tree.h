#pragma once

// Tested by: tests/unit/planners/tree/tree_test.cpp

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"
#include "planners/graph/residual.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// Two ranks that are neighbours in a tree, with a route in each direction.
struct Branch {
  Rank a;
  Rank b;
  Path there;  ///< From a to b.
  Path back;   ///< From b to a.
};

/// An undirected spanning tree; data flows away from or towards whichever rank it is oriented from.
struct SpanningTree {
  Rank centre;  ///< Where it hangs when the collective leaves that open.
  std::int64_t weight = 1;
  std::vector<Branch> branches;
};

/// The tree oriented from `root`: its edges from the root on, with the links that lead outwards, or inwards.
Arborescence orient(const SpanningTree& tree, Rank root, bool outwards);

/// The largest distance from `root`, in branches.
std::uint32_t height(const SpanningTree& tree, Rank root);

/// A rank with the least height.
Rank find_centre(const SpanningTree& tree);

/// What every strategy makes trees for: from one root, or with centres of its own choice.
struct TreeDemand {
  const Topology& topology;
  const RankGroups& groups;
  const LogicalGraph& graph;
  Rank root;  ///< none when any rank may be the root.
};

/// Trees that carry a message together, each a part in proportion to its weight; empty when the strategy does not fit
/// the network.
using SpanningTrees = std::vector<SpanningTree>;

/// As many edge-disjoint trees along direct links as there are, shallow first.
SpanningTrees disjoint_trees(const TreeDemand& demand);

/// Shapes of the part of a tree inside one machine.
enum class Inside : std::uint8_t { star, binary, chain, grown };

/// Double binary trees over the machines, a pair for each rail; empty with one machine or one rank in each.
SpanningTrees double_trees(const TreeDemand& demand, Inside inside);

/// Double binary trees over the ranks themselves, a pair for each port. `keeps_routes`: each pair keeps to one of the
/// routes that every two ranks have, as through one plane of switches; otherwise branches take the least loaded routes.
SpanningTrees rank_trees(const TreeDemand& demand, bool keeps_routes);

/// Trees grown branch by branch where the links are least loaded: for every network with routes in both directions.
SpanningTrees grown_trees(const TreeDemand& demand, std::size_t count);

/// One tree whose links have room for as high a rate as greedy growth finds, at least so many bytes per second: where
/// ranks have unlike rates, slow ones are its leaves and fast ones have many neighbours. Empty where that is not found,
/// past 1,024 ranks and where some must not relay. Cost: a dozen trees of O(ranks) route searches each.
SpanningTrees thick_tree(const TreeDemand& demand, double min_rate);

/// Seconds per byte of the message that the fullest link needs: when each link carries every tree once in each
/// direction, or, with a root, when the trees are oriented from it and carry data outwards only.
double fullest_link(const Topology& topology, const SpanningTrees& trees, Rank root);

}  // namespace espalier::planners
