#pragma once

// Tested by: tests/unit/planners/packing/split/pack_trees_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/graph/work_budget.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

/// Capacity between ranks, by rank number; ranks that are no neighbours have none.
struct RankEdge {
  std::uint32_t tail = 0;
  std::uint32_t head = 0;
  std::int64_t capacity = 0;
};

/// Spanning out-trees whose weights sum to demands[r] for every root r and that together take no edge past its
/// capacity, their edges without links, each after the one that enters its parent; nothing when the budget is spent.
///
/// Trees grow breadth first, an edge at a time, each with as much weight as leaves room for the trees that are still to
/// come.
/// Requires: for every rank, the demands' sum flows from the roots to it (DemandOracle). Cost: about one maximum flow
/// per tree and rank.
/// Source: K. Berczi, A. Frank, "Variations for Lovasz' submodular ideas" (packing of arborescences with multiplicities
/// after L. Lovasz, J. Edmonds and A. Schrijver, "Combinatorial Optimization", chapter 53).
std::optional<std::vector<Arborescence>> pack_trees(std::span<const RankEdge> edges,
                                                    std::span<const std::int64_t> demands, WorkBudget& budget);

}  // namespace espalier::planners
