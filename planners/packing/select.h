#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstddef>
#include <optional>
#include <vector>

#include "base/rational.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

// Trees that join the same ranks alike are one tree between ranks; over unlike links they are several routed trees.

/// Routed trees of one root that are few enough.
inline constexpr std::size_t enough_routed_trees = 16;

/// The most routed trees that one root has.
std::size_t max_routed_trees(const std::vector<Arborescence>& trees);

/// How long the busiest link or backplane is busy, in seconds for all weights together as one unit.
Rational load_of(const Topology& topology, const std::vector<Arborescence>& trees);

/// Puts the found trees in the place of the best where they load the network less (load_of), or as much and are, in
/// this order, of fewer routed trees where one of both has more than `enough_routed_trees`, less deep, or fewer trees
/// between ranks. Requires: trees that span the ranks, every root's weights in the same ratio in both.
void select_better(const Topology& topology, std::optional<std::vector<Arborescence>>& best,
                   std::vector<Arborescence> found);

}  // namespace espalier::planners
