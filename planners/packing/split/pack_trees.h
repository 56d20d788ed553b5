#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planners/packing/split/work_budget.h"

namespace espalier {

/// Capacity between ranks, by rank number; ranks that are no neighbours have none.
struct RankEdge {
  std::uint32_t tail = 0;
  std::uint32_t head = 0;
  std::int64_t capacity = 0;
};

/// A spanning out-tree over the ranks with the capacity it takes on each of its edges. Every edge comes after the one
/// that enters its tail.
struct RankTree {
  std::uint32_t root = 0;
  std::int64_t weight = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
};

/// Trees whose weights sum to demands[r] for every root r and that together take no edge past its capacity; nothing
/// when the budget is spent.
///
/// Shallow where it is easy: stars where every root has the capacity to send straight to all; for a single root,
/// trees that hand parts to all ranks, which hand them to all others. Otherwise trees grow breadth first, an edge at a
/// time, each with as much weight as leaves room for the trees that are still to come.
/// Requires: for every rank, the demands' sum flows from the roots to it (DemandOracle). Cost: about one maximum flow
/// per tree and rank.
/// Source: K. Berczi, A. Frank, "Variations for Lovasz' submodular ideas" (packing of arborescences with multiplicities
/// after L. Lovasz, J. Edmonds and A. Schrijver, "Combinatorial Optimization", chapter 53).
std::optional<std::vector<RankTree>> pack_trees(std::span<const RankEdge> edges, std::span<const std::int64_t> demands,
                                                WorkBudget& budget);

/// Where one root has the demand: trees that hand a part to each rank, which hands it to all others.
std::optional<std::vector<RankTree>> pack_relays(std::span<const RankEdge> edges,
                                                 std::span<const std::int64_t> demands);

/// One tree per root that goes straight to all ranks; nothing where a root has less capacity to some rank than its
/// demand.
std::optional<std::vector<RankTree>> pack_stars(std::span<const RankEdge> edges, std::span<const std::int64_t> demands);

}  // namespace espalier
