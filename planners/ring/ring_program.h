#pragma once

// Tested by: tests/property/planners/ring_test.cpp

#include <optional>

#include "planners/graph/resource_graph.h"
#include "planners/lp/column_generation.h"
#include "planners/ring/ring.h"

namespace espalier::planners {

/// Columns of one group: directed cycles through all ranks, each hop a shortest path through nodes that are not ranks.
/// A column's edges are the cycle's, from rank 0 round to it.
class RingOracle final : public PricingOracle {
 public:
  /// Requires: 2 to 16 ranks; `has_cycle`; a graph that is not mirrored and outlives the oracle.
  explicit RingOracle(const ResourceGraph& graph) : graph_(graph) {}

  [[nodiscard]] MasterProgram program() const;
  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

  /// Whether there is a cycle through all ranks at all.
  [[nodiscard]] static bool has_cycle(const ResourceGraph& graph);

 private:
  const ResourceGraph& graph_;
};

/// The set of rings with the largest total rate of all, any fractions of links allowed, and the prices that prove it:
/// the linear program over all cycles, whose columns are cheapest cycles by dynamic programming over sets of ranks.
/// Empty where there is no cycle; nothing past 16 ranks or when the solver reached no exact optimum within its limits.
/// Rates are exact while they have a common denominator up to 2^20, whole bytes per second rounded down past that.
std::optional<RingSet> best_fractional_rings(const Topology& topology);

/// A good set of rings for up to 128 ranks, found alike with cycles that are cheap instead of cheapest; empty
/// when none is found. Where every cable is duplex the two directions are one resource, and every cycle gives half of
/// what it carries to the same cycle backwards. `limit` is left at zero. Cost: as many rounds as 2^26 / ranks^3, 300 at
/// most; tenths of a second up to 64 ranks, a few seconds for 128.
RingSet good_fractional_rings(const Topology& topology);

}  // namespace espalier::planners
