#pragma once

// Tested by: tests/property/planners/tree_program_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"
#include "planners/graph/resource_graph.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A tree as a program's solution has it.
struct ProgramTree {
  std::uint32_t root = 0;              ///< A rank.
  bool inward = false;                 ///< Data flows to the root.
  Rational share;                      ///< The part that it carries: of S, or of each block where blocks are distinct.
  std::vector<std::uint32_t> edges;    ///< Paths from rank to rank in the direction of the data, one after the other.
  std::vector<std::uint32_t> targets;  ///< Ranks with a block of their own; empty where all edges carry the same.
};

/// Whole numbers near the shares x units whose sum is that of the shares, rounded: largest remainders round up.
std::vector<std::int64_t> apportion(std::span<const Rational> shares, std::int64_t units);

/// The same trees with whole weights over links: parallel links get no more than their rate allows in the time that the
/// solution takes, a tree that does not fit on one of them being split. Weights are exact while shares and links have a
/// common denominator up to 2^50; past it they are rounded to multiples of 2^-30, sums of one root's trees alike.
/// `time_per_share` is how long the solution takes per byte of what a share of 1 stands for (S, or a block).
/// Requires: a sum of shares per root that is the same for its in-trees and its out-trees, where it has both.
Forest whole_forest(const Topology& topology, const ResourceGraph& graph, const std::vector<ProgramTree>& trees,
                    const Rational& time_per_share);

// On a mirrored graph a tree may be reversed: its edges below are paths from rank to rank, as in ProgramTree.

/// How far the farthest rank is from each rank, in edges of the tree: its height with that root; `no_root` for ranks
/// that must not relay.
std::vector<std::uint32_t> tree_heights(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges);
inline constexpr std::uint32_t no_root = UINT32_MAX;

/// The same tree, every path leading away from `root`.
std::vector<std::uint32_t> directed_from(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges,
                                         std::uint32_t root);

/// The same tree, every path reversed.
std::vector<std::uint32_t> mirror_image(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges);

}  // namespace espalier::planners
