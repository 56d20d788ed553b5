#pragma once

// Tested by: tests/property/planners/pruned_packing_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/graph/work_budget.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// Whether as much capacity enters every vertex that is no rank as leaves it.
bool switches_are_balanced(const FlowNetwork& network, std::span<const std::int64_t> capacities);

/// Takes off capacity that no rank needs until every switch is balanced; nothing when a switch stays unbalanced.
/// `capacities` has an entry per arc.
/// Requires: with the demands, the condition of DemandOracle holds. Cost: one maximum flow per rank and arc at an
/// unbalanced switch.
std::optional<std::vector<std::int64_t>> trim_to_balance(const FlowNetwork& network,
                                                         std::span<const std::int64_t> capacities,
                                                         std::span<const std::int64_t> demands, WorkBudget& budget);

/// Balances every switch by shrinking its larger side in proportion, whatever the ranks then lose.
std::vector<std::int64_t> shrink_to_balance(const FlowNetwork& network, std::span<const std::int64_t> capacities);

}  // namespace espalier::planners
