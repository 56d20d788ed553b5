#pragma once

#include <optional>
#include <vector>

#include "schedule/tree_schedule.h"
#include "topology/flow_network.h"
#include "topology/topology.h"

namespace espalier {

/// Trees of equal total weight from every rank at the best rate there is, found by the linear program over trees on the
/// orbits of the network's symmetry: few trees, shallow ones preferred. Nothing where there is too little symmetry for
/// the network's size or the program was not solved exactly. `direction` as for a packing.
/// Requires: every rank reaches every other; two ranks or more.
std::optional<std::vector<Arborescence>> program_trees(const Topology& topology, Direction direction);

}  // namespace espalier
