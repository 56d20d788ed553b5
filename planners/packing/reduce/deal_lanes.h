#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/packing/reduce/parallel_switches.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Trees that are wider than links, dealt out to lanes: each edge that passes sibling switches takes one lane, so that
/// every link carries no more than its capacity. Trees are cut into like ones of `unit` weight each, or, where so
/// much does not fit on any link, into few layers (even_layers.h) of all trees.
///
/// What passes parallel is an edge between the neighbours where it comes in and where it leaves. As many colours as
/// lanes are enough for all of them where no neighbour has more than its lanes hold (edge_coloring.h). `capacities` by
/// link, in the unit of the trees' weights; `unit` divides all weights. Nothing where the trees do not fit so, or are
/// too many. Requires: trees over one lane or another, within the capacities of all lanes together. Cost: edges of all
/// trees x (neighbours + lanes).
std::optional<std::vector<Arborescence>> deal_lanes(const Topology& topology, const ParallelSwitches& parallel,
                                                    std::span<const std::int64_t> capacities,
                                                    std::span<const Arborescence> trees, std::int64_t unit);

}  // namespace espalier::planners
