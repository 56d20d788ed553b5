#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planners/packing/find/growing_trees.h"
#include "planners/packing/parent_tree.h"

namespace espalier::planners {

/// A network with one root, in capacities of any unit. Requires: capacities that sum to less than 2^56.
struct RootNetwork {
  FlowNetwork network;  ///< Away from the root, which nothing enters.
  Rank root;
  std::int64_t rate = 0;               ///< What the trees carry in all.
  std::vector<std::int64_t> parallel;  ///< By arc: how many equal links it stands for; empty where all are one.
};

/// No packing of at most `most_trees` trees that together carry the rate has all of them less deep: a tree of weight w
/// has at most (what v sends) / w edges at v, so it spans at most d (1 + k + ... + k^(h-1)) ranks in h hops, where d
/// are the root's children and k = (what any other rank sends) / w. As the d of all trees together are limited by what
/// the root sends, and the sum is convex in w, trees of equal weight span most.
std::uint32_t least_tree_depth(const RootNetwork& network, std::size_t most_trees);

inline constexpr std::size_t most_shallow_trees = 16;

/// Complete trees with whole weights: a small number of shallow trees of one root, by numbers of trees and orders of
/// growth (shallow_root_trees.h): the shallowest that were found, and of those the fewest. Counted work is limited to
/// that of one of `searches`.
std::optional<std::vector<ParentTree>> find_shallow_trees(const RootNetwork& network, std::int64_t searches = 1);

}  // namespace espalier::planners
