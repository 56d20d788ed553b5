#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <utility>
#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"

namespace espalier::planners {

/// What a group of a concurrent flow carries: one unit from its source to each of its targets, or amounts of its own.
struct FlowDemand {
  std::uint32_t source = 0;  ///< A rank.
  std::vector<std::uint32_t> targets;
  std::int64_t copies = 1;  ///< How many like demands this one stands for: the size of the source's orbit.
  std::vector<std::int64_t> amounts = {};  ///< By target; none: one unit each.

  [[nodiscard]] std::int64_t amount(std::size_t target) const { return amounts.empty() ? 1 : amounts[target]; }
};

/// Columns of a concurrent flow: each demand's columns are trees of shortest paths, through any nodes, that carry as
/// many units over each edge as the targets behind it get. `edges` of a column are the tree's paths from rank to
/// rank. Resources are orbits of resources.
class FlowOracle final : public PricingOracle {
 public:
  /// Requires: every target can be reached; a graph that outlives the oracle; all demands together, images included,
  /// the same under every automorphism; on a mirrored graph, demands whose mirror image (targets as sources) is
  /// themselves.
  FlowOracle(const OrbitGraph& orbits, std::vector<FlowDemand> demands)
      : orbits_(orbits), demands_(std::move(demands)) {}

  [[nodiscard]] MasterProgram program() const;
  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

 private:
  const OrbitGraph& orbits_;
  std::vector<FlowDemand> demands_;
};

}  // namespace espalier::planners
