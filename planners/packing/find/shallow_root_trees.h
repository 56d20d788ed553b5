#pragma once

#include <optional>
#include <vector>

#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier {

/// Few and low trees of one root that reach the rate of its smallest cut: at most 16 that join different ranks, and of
/// the packings found the one of least height, then of fewest trees. In-trees where `direction` is reversed.
///
/// For 16 trees of equal weight and every smaller number, trees grow side by side (growing_trees.h, low_trees.h) in
/// what every link has room for, rounded down to whole trees; where no such trees exist, trees whose weights are nearly
/// equal at first and that are split as they grow. The best of all these are lowered by exchanges (tree_exchange.h).
/// Where switches have parallel ones, trees also grow wider than links and are dealt out to lanes (deal_lanes.h), for
/// at most 16 ways if possible, which counts for more than height. Nothing past 512 ranks, where a node has a
/// backplane, where rates have too fine a common divisor, and where none was found. Cost: some ten thousand searches
/// per rank; counted work is limited.
std::optional<std::vector<Arborescence>> low_root_trees(const Topology& topology, Direction direction, Rank root);

}  // namespace espalier
