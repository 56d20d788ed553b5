#pragma once

#include <cstdint>
#include <span>

#include "planners/packing/capacity_graph.h"
#include "planners/packing/work_budget.h"

namespace espalier {

/// Splits off every switch whose splitting no cut can notice: those with all capacity from or to one neighbour, and
/// those between two neighbours, such as NICs.
/// Requires: as much capacity into every switch as out of it.
void contract_simple_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices);

/// Takes away all switches that no edge joins to a rank, whether the demands need them or not; false when there are
/// none.
bool drop_upper_tiers(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices);

/// Takes away the upper tiers of switches, those farthest from the ranks, where the demands do not need them, as spines
/// over boxes that their leaves already join: fewer ways to choose from, and shorter ones. A tier stays or goes whole.
/// Cost: one maximum flow per rank and tier at worst.
void drop_idle_tiers(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                     std::span<const std::int64_t> demands, WorkBudget& budget);

}  // namespace espalier
