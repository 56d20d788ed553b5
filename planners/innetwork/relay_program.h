#pragma once

// Tested by: tests/unit/planners/innetwork/innetwork_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/innetwork/tree_grower.h"
#include "schedule/collective.h"

namespace espalier::planners {

/// Trees that carry the same part of the data, and how much of it: an out-tree, an in-tree, or for all_reduce one of
/// each with the same root.
struct WeightedRelayTrees {
  std::optional<RelayTree> in;
  std::optional<RelayTree> out;
  std::int64_t weight = 1;
};

/// Weighted trees for a collective that load the fullest link as little as a linear program over the trees that were
/// found can make them. Where every rank is a root, the weights of each
/// have the same sum.
///
/// Trees are found by column generation: the program's prices make full links dear, and trees are grown along cheap
/// ones. These are not always the cheapest, so the program may end above its optimum. The final weights are exact. Past
/// 64 roots, 128 ranks or 640 links and backplanes there is no program: prices follow the load, and weights count how
/// often a tree was grown. Requires: every rank reaches every other; broadcast, reduce, all_gather, reduce_scatter or
/// all_reduce; two ranks or more.
std::vector<WeightedRelayTrees> find_relay_trees(const Topology& topology, const Collective& collective);

}  // namespace espalier::planners
