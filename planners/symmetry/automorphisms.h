#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "planners/graph/resource_graph.h"
#include "planners/symmetry/permutation.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Generators of the group of automorphisms of the nodes that the planners' programs cannot tell apart: ranks stay
/// ranks, backplanes and the capacities of edges stay what they are. Only automorphisms that commute with all of
/// `commuting` are taken (their centraliser), and, where `marks` has a number per rank, those that keep it. Names,
/// latencies and overheads are not looked at. Requires: `graph` made of `topology`. Cost: visit_automorphisms.
std::vector<Permutation> find_automorphisms(const Topology& topology, const ResourceGraph& graph,
                                            std::span<const Permutation> commuting = {},
                                            std::span<const std::int64_t> marks = {});

}  // namespace espalier::planners
