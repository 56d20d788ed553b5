#pragma once

#include <optional>
#include <vector>

#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// A small number of shallow trees of one root over machines (Node::host) that are faster inside than between them:
/// trees over whole machines (shallow_tree_search.h), and in every machine the rank that a tree comes to hands it to
/// all others at once. They carry the rate of the problem's cut, which the loads of all links prove; nothing where they
/// do not, or where a machine's ranks are not joined by switches. For fabrics too large to see every rank of.
std::optional<std::vector<Arborescence>> machine_trees(const PackingProblem& problem);

}  // namespace espalier::planners
