#pragma once

#include <vector>

#include "planners/program/pattern_program.h"
#include "planners/program/resource_graph.h"

namespace espalier {

/// What a group of a concurrent flow carries: one unit from its source to each of its targets.
struct FlowDemand {
  std::uint32_t source = 0;  ///< A rank.
  std::vector<std::uint32_t> targets;
};

/// Patterns of a concurrent flow: each demand's patterns are trees of shortest paths, through any nodes, that carry as
/// many units over each edge as there are targets behind it. `edges` of a pattern are the tree's paths from rank to
/// rank.
class FlowOracle final : public PatternOracle {
 public:
  /// Requires: every target can be reached; a graph that outlives the oracle; on a mirrored graph, demands whose mirror
  /// image (targets as sources) is themselves.
  FlowOracle(const ResourceGraph& graph, std::vector<FlowDemand> demands)
      : graph_(graph), demands_(std::move(demands)) {}

  [[nodiscard]] PatternProgram program() const;
  [[nodiscard]] Offer<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] Offer<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

 private:
  const ResourceGraph& graph_;
  std::vector<FlowDemand> demands_;
};

}  // namespace espalier
