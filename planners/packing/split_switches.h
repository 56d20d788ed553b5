#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "planners/packing/capacity_graph.h"
#include "planners/packing/work_budget.h"

namespace espalier {

/// What `split_switches` may do so that capacities divide evenly.
enum class Refinement : std::uint8_t { none, multiply };

/// How a splitting went.
struct Splitting {
  std::int64_t factor = 1;      ///< All capacities, and with them the demands, were multiplied by this.
  bool is_exactly_even = true;  ///< Every switch was dealt out evenly to the last unit.
};

/// Takes every vertex that is no rank out of the graph by splitting off pairs of its edges, so that trees with the
/// demands still pack into what is left.
///
/// Capacity is first dealt out evenly over the pairs of a switch's neighbours, which gives shallow trees: first over
/// those that no faster links connect (boxes on a fabric), then over all. Where that cuts too much, pair by pair as far
/// as every cut allows. Nothing is done, and nothing returned, when refined capacities would have to be split by pairs
/// while the trees have several roots (finer units then only make more trees), or when the budget is spent.
/// Requires: as much capacity into every switch as out of it; the condition of DemandOracle holds.
/// Cost: one maximum flow per rank for each switch, or for each pair of its neighbours.
/// Source: W. Mader, "Konstruktion aller n-fach kantenzusammenhaengenden Digraphen", European J. Combinatorics 3, 1982;
/// A. Frank, "On connectivity properties of Eulerian digraphs", 1989; B. Jackson, "Some remarks on arc-connectivity,
/// vertex splitting, and orientation in graphs and digraphs", J. Graph Theory 12, 1988; L. Zhao et al., "ForestColl",
/// arXiv 2402.06787.
std::optional<Splitting> split_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                                        std::span<const std::int64_t> demands, Refinement refinement,
                                        WorkBudget& budget);

}  // namespace espalier
