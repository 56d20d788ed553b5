#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <optional>
#include <vector>

#include "planners/symmetry/abelian_group.h"
#include "planners/symmetry/permutation.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Commuting automorphisms that take any rank to any other, each pair by exactly one of them, proposed by the nodes'
/// names: "unit3.box5.gpu7" is the 7th of 8 in box 5 of 32 in unit 3. A generator moves every node one place on, or a
/// divisor of the number of places, at some of these positions, and every link must then lie on a like one. So networks
/// of any size are searched in time linear in their links, where names count what is alike; others give nothing.
/// Renames nodes. What looks alike but is not (a dead cable, a slower NIC) is never taken for alike.
/// Requires: no two parallel links (topology/bundles.h).
std::optional<AbelianGroup> find_name_shifts(const Topology& topology);

/// Automorphisms that the names propose in the same way, of ranks and of switches alone ("spine15"), each proven. There
/// may be more. None where there are parallel links. Cost: as above.
std::vector<Permutation> find_name_automorphisms(const Topology& topology);

}  // namespace espalier::planners
