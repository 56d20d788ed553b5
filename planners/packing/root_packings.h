#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/rational.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier {

// Packings of trees of one root, out-trees when the network is read forward, in-trees when it is read reversed.

/// Past so many trees of one root some of the rate may be given for fewer.
inline constexpr std::size_t enough_trees = 16;

/// The network for trees of one root: nothing leaves ranks that must not relay, and the root is like any other. Ranks
/// that may relay, all of them, or no root make it the network that was given.
FlowNetwork network_of(const Topology& topology, Direction direction, Rank root);

/// As measure_shape counts trees: those that join the same ranks in the same way, over other links, are one.
std::size_t count_trees(std::span<const Arborescence> trees);

/// At most `enough_trees` low trees at the bound, from the ranks or from whole machines; the lower ones of both.
std::optional<std::vector<Arborescence>> lowest_trees(const Topology& topology, Direction direction, Rank root);

/// Trees of equal weight, as few as let every arc carry whole ones: what an arc has room for is rounded down to whole
/// trees, and where every rank is still behind cuts of as many of them such trees exist. They lose at most `gap` of the
/// time. Nothing where no number up to 20 does it, or it is more work than `most_arcs_passed` (work_budget.h).
std::optional<std::vector<Arborescence>> equal_trees(const Topology& topology, Direction direction, Rank root,
                                                     const Rational& gap);

}  // namespace espalier
