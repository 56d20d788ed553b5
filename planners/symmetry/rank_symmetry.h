#pragma once

// Tested by: tests/unit/planners/symmetry_test.cpp

#include <cstdint>
#include <span>

#include "planners/graph/resource_graph.h"
#include "planners/symmetry/abelian_group.h"
#include "planners/symmetry/permutation.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A group of automorphisms of a network under which few ranks are really different.
struct RankSymmetry {
  AbelianGroup group;
  Orbits ranks;
};

/// Past so many ranks no symmetry is looked for: each generator is as long as the network, and there are nearly as
/// many.
inline constexpr std::size_t max_searched_ranks = 4096;

/// The largest group that a seeded search finds among those that are easy to plan with: commuting automorphisms, so
/// that the images of one tree under them load alike links alike, and mostly without fixed ranks, so that a rank gets
/// few images of one tree (order x orbits of ranks <= `max_waste` x ranks; with 1, no rank is ever fixed). Past
/// `max_searched_ranks`, only the automorphism that changes nothing. Deterministic.
///
/// The search: automorphisms at random from the automorphism group, and their powers; of the best ones, the one whose
/// centraliser keeps most ranks alike; then the same in that centraliser, until it has nothing more to give.
/// Where `marks` has a number per rank, automorphisms keep it. Requires: `graph` made of `topology`. Source: the random
/// elements are product replacement (F. Celler et al., "Generating random elements of a finite group", Comm. Algebra
/// 23, 1995).
RankSymmetry find_rank_symmetry(const Topology& topology, const ResourceGraph& graph, std::uint64_t max_waste = 4,
                                std::span<const std::int64_t> marks = {});

/// Only the automorphism that changes nothing.
RankSymmetry no_symmetry(const ResourceGraph& graph);

}  // namespace espalier::planners
