#pragma once

#include <optional>
#include <vector>

#include "base/rational.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier {

/// Few and low trees of one root over machines (Node::host) that are faster inside than between them: trees over whole
/// machines (low_tree_search.h), and in every machine the rank that a tree comes to hands it to all others at once.
/// They carry `rate` bytes per second, which the loads of all links prove; nothing where they do not, or where a
/// machine's ranks are not joined by switches. For fabrics too large to see every rank of.
std::optional<std::vector<Arborescence>> machine_trees(const Topology& topology, Direction direction, Rank root,
                                                       const Rational& rate);

}  // namespace espalier
