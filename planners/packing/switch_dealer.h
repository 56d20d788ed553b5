#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planners/packing/capacity_graph.h"
#include "planners/packing/even_split.h"
#include "planners/packing/switch_sides.h"

namespace espalier {

/// What is dealt from each edge into a switch to each edge out of it.
using DealtAmounts = std::vector<std::vector<std::int64_t>>;

/// The switches of a graph one after the other, and how each is dealt out evenly. Capacities may be multiplied so that
/// they divide.
class SwitchDealer {
 public:
  /// Capacities are multiplied by `most_factor` at most. `demands` count towards the sum that must fit 64 bits.
  SwitchDealer(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
               std::span<const std::int64_t> demands, std::int64_t most_factor);

  /// The switch with the fewest pairs of edges, each switch once; nothing when all had their turn.
  std::optional<SwitchEdges> next();

  /// The factor on all capacities with which this dealing divides exactly; nothing where no factor within the limits
  /// does that.
  [[nodiscard]] std::optional<std::int64_t> factor_for(const SwitchEdges& edges, Dealing dealing) const;
  void scale(std::int64_t factor);
  /// The product of all factors so far.
  [[nodiscard]] std::int64_t factor() const { return factor_; }

  /// Empty when the dealing is impossible.
  [[nodiscard]] DealtAmounts amounts(const SwitchEdges& edges, Dealing dealing) const;

 private:
  CapacityGraph& graph_;
  NeighbourGroups groups_;
  std::vector<std::uint32_t> waiting_;  ///< Switches that had no turn.
  std::int64_t most_factor_;
  std::int64_t factor_ = 1;
  __int128 total_ = 0;
};

/// Deals every switch out evenly without asking whether the ranks still get enough; trees that pack into the result are
/// the proof. `dealing` is tried first, then all pairs. Returns the factor on all capacities; nothing, and the graph in
/// pieces, where a switch cannot be dealt evenly or the pairs of neighbours pass 2^21.
std::optional<std::int64_t> deal_evenly(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                                        std::span<const std::int64_t> demands, Dealing dealing);

/// The largest factor for refinement.
inline constexpr std::int64_t most_refinement = std::int64_t{1} << 20U;

}  // namespace espalier
