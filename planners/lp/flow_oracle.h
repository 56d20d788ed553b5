#pragma once

#include <utility>
#include <vector>

#include "planners/lp/orbit_graph.h"
#include "planners/lp/pattern_program.h"

namespace espalier {

/// What a group of a concurrent flow carries: one unit from its source to each of its targets.
struct FlowDemand {
  std::uint32_t source = 0;  ///< A rank.
  std::vector<std::uint32_t> targets;
  std::int64_t copies = 1;  ///< How many like demands this one stands for: the size of the source's orbit.
};

/// Patterns of a concurrent flow: each demand's patterns are trees of shortest paths, through any nodes, that carry as
/// many units over each edge as there are targets behind it. `edges` of a pattern are the tree's paths from rank to
/// rank. Resources are orbits of resources.
class FlowOracle final : public PatternOracle {
 public:
  /// Requires: every target can be reached; a graph that outlives the oracle; all demands together, images included,
  /// the same under every renaming; on a mirrored graph, demands whose mirror image (targets as sources) is themselves.
  FlowOracle(const OrbitGraph& orbits, std::vector<FlowDemand> demands)
      : orbits_(orbits), demands_(std::move(demands)) {}

  [[nodiscard]] PatternProgram program() const;
  [[nodiscard]] Offer<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] Offer<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

 private:
  const OrbitGraph& orbits_;
  std::vector<FlowDemand> demands_;
};

}  // namespace espalier
