#pragma once

// Tested by: tests/unit/planners/damage/failures_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/cables.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Which nodes and which cables some symmetry of the network turns into each other: those with one number are alike in
/// everything but their names. What is true of a network without one of them is true without another.
struct Alike {
  std::vector<std::uint32_t> of_node;   ///< By node id.
  std::vector<std::uint32_t> of_cable;  ///< By position in the cables.
};

/// Symmetries keep kinds, ranks, all rates and times, what switches compute, classes, which nodes are of one host, and
/// the `fixed` rank where one is given (a collective's root); names and rails do not count. Requires: the cables of
/// this topology. Cost: find_name_automorphisms and count_refined_colors where no rank is fixed; visit_automorphisms
/// where one is, or these leave open what is alike.
Alike find_alike(const Topology& topology, std::span<const Cable> cables, Rank fixed = {});

}  // namespace espalier::planners
