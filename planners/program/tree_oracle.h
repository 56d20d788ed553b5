#pragma once

#include "planners/program/pattern_program.h"
#include "planners/program/resource_graph.h"

namespace espalier {

/// Patterns of all_reduce: one family per root, whose first group holds the out-trees from that root and whose second
/// the in-trees to it. On a mirrored graph one family with one group is enough: a spanning tree of rank 0 there and
/// back, since any rank of an undirected tree may be its root.
///
/// A tree's edge goes from rank to rank by a shortest path through nodes that are not ranks.
class TreeOracle final : public PatternOracle {
 public:
  /// Requires: every rank reaches every other; a graph that outlives the oracle.
  explicit TreeOracle(const ResourceGraph& graph) : graph_(graph) {}

  [[nodiscard]] PatternProgram program() const;
  [[nodiscard]] Offer<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] Offer<BigInteger> cheapest(std::span<const BigInteger> prices) const override;

 private:
  const ResourceGraph& graph_;
};

}  // namespace espalier
