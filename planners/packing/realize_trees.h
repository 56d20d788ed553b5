#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <span>
#include <vector>

#include "planners/graph/parent_tree.h"
#include "planners/packing/split/capacity_graph.h"
#include "planners/packing/split/pack_trees.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// The capacity that a graph without switches has between ranks.
std::vector<RankEdge> rank_edges(const FlowNetwork& network, const CapacityGraph& graph);

/// Trees over the links of the network: each edge of a tree takes its weight of the paths that the graph kept for it,
/// and a tree whose edges run over several paths is cut into as many trees as needed. On a reversed network the trees
/// are in-trees.
/// Requires: every vertex of the graph with edges is a rank; the trees take no edge past its capacity.
std::vector<Arborescence> realize_trees(const FlowNetwork& network, CapacityGraph& graph,
                                        std::span<const Arborescence> trees);

/// A complete tree over the network's links, level by level. Requires: members from the root on; arcs, vertices and
/// ranks of the tree that are those of the network.
Arborescence over_links(const FlowNetwork& network, const ParentTree& tree);

/// Divides all weights by what they have in common.
void reduce_weights(std::vector<Arborescence>& trees);

/// The links of a path of arcs, without loops, in the direction of the data.
std::vector<LinkId> links_along(const FlowNetwork& network, std::span<const std::uint32_t> path);

}  // namespace espalier::planners
