#pragma once

// Tested by: tests/property/planners/large_networks_test.cpp

#include <cstdint>
#include <functional>
#include <vector>

#include "planners/graph/resource_graph.h"

namespace espalier::planners {

/// Spanning trees of equal weight for an all_reduce: `out_trees` from a root, each with the tree of `in_trees` to it;
/// on a mirrored graph an out-tree is its own in-tree, and there are no others.
struct EvenTrees {
  std::vector<std::vector<std::uint32_t>> out_trees;  ///< Their edges, path after path in the direction of the data.
  std::vector<std::vector<std::uint32_t>> in_trees;
  double throughput = 0;       ///< What all of them carry together, in the graph's unit.
  std::size_t full_links = 0;  ///< Resources that they leave next to no room.
};

/// Trees near the best for networks where no program can be solved: a number of trees grow one after the other, each
/// along what costs least when full resources are dear (PassLoads); then edges change places while that makes anything
/// less full, at prices that get sharper; then trees are made shallower where links have room. Several numbers of trees
/// are tried, small ones first, but those for which no links would be left: as long as another number brings 1 % more,
/// and up to half a percent below `limit`, which none can pass. Twice a small number is taken where that leaves fewer
/// links full. Work is limited by counted steps.
/// Requires: every rank reaches every other; a root that may relay.
EvenTrees find_even_trees(const ResourceGraph& graph, std::uint32_t root, double limit,
                          const std::function<void(const EvenTrees&)>& on_better = {});

/// One tree of equal weight per rank, out-trees or in-trees, in the order of the ranks, found in the same way: for an
/// all_gather or a reduce_scatter, which carry `limit` at most. Requires: every rank reaches every other and may relay;
/// a graph that is not mirrored.
EvenTrees find_even_trees_of_all(const ResourceGraph& graph, bool inward, double limit);

/// Of the ranks that may relay one that can send and receive most. Requires: some may.
std::uint32_t widest_rank(const ResourceGraph& graph);

}  // namespace espalier::planners
