#pragma once

#include <optional>
#include <vector>

#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// A small number of shallow trees of one root that reach the rate of its smallest cut: at most 16 that join different
/// ranks, and of the packings found the least deep one, then the one of fewest trees.
///
/// For 16 trees of equal weight and every smaller number, trees grow side by side (growing_trees.h, shallow_trees.h) in
/// what every link has room for, rounded down to whole trees; where no such trees exist, trees whose weights are nearly
/// equal at first and that are split as they grow. The best of all these are made shallower by exchanges
/// (tree_exchange.h). `is_wide`: trees grow wider than links and are spread over planes (parallel_switches.h); nothing
/// where no switches have parallel ones. Nothing past 512 ranks, where a node has a backplane, where rates have too
/// fine a common divisor, and where none was found. Cost: some ten thousand searches per rank; counted work is limited,
/// each of both kinds getting half. Requires: a problem of one root.
std::optional<std::vector<Arborescence>> shallow_root_trees(const PackingProblem& problem, bool is_wide);

}  // namespace espalier::planners
