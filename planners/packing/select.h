#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Ways of one root, each with links of its own, that are few enough.
inline constexpr std::size_t enough_ways = 16;

/// The most trees that one root has, each with links of its own.
std::size_t most_ways(const std::vector<Arborescence>& trees);

/// Puts the found trees in the place of the best where they load the network less, or as much and are, in this order,
/// of fewer ways where one of both has more than `enough_ways`, less deep, or fewer trees between ranks. Requires:
/// trees that span the ranks, every root's weights in the same ratio in both.
void select_better(const Topology& topology, std::optional<std::vector<Arborescence>>& best,
                   std::vector<Arborescence> found);

}  // namespace espalier::planners
