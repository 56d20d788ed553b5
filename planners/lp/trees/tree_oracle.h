#pragma once

// Tested by: tests/property/planners/tree_program_test.cpp

#include <vector>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"

namespace espalier::planners {

/// One kind of spanning tree of a program.
struct TreeGroup {
  std::uint32_t root = 0;    ///< A rank, the first of its orbit.
  bool inward = false;       ///< Data flows to the root.
  std::uint32_t family = 0;  ///< As in MasterProgram.
  std::int64_t copies = 1;   ///< Like trees that one unit of the column stands for, each as often as the share says.
  std::int64_t share = 1;    ///< How much its root carries when a root of share 1 carries 1.
};

/// The groups of a program over trees.
struct TreeGroups {
  std::vector<TreeGroup> groups;
  Sharing sharing = Sharing::free;
};

/// all_gather (out-trees) or, `inward`, reduce_scatter: every root carries the same, or, where `shares` has a number
/// per rank, in their ratio; a rank without a share is the root of nothing. Requires: shares that are alike in an
/// orbit.
TreeGroups sharded_groups(const OrbitGraph& orbits, bool inward, std::span<const std::int64_t> shares = {});
/// broadcast or, `inward`, reduce: trees of one root. Requires: a root that is alone in its orbit.
TreeGroups single_root_group(std::uint32_t root, bool inward);
/// all_reduce: one family per orbit of roots, whose first group holds the out-trees from its first rank and whose
/// second the in-trees to it. On a mirrored graph one family with one group is enough: a spanning tree of rank 0 there
/// and back, since any rank of an undirected tree may be its root.
TreeGroups all_reduce_groups(const OrbitGraph& orbits);

/// Columns that are spanning trees of the ranks, resources being orbits of resources.
///
/// A tree's edge goes from rank to rank by a shortest path through nodes that are not ranks.
class TreeOracle final : public PricingOracle {
 public:
  /// `shallow` also proposes trees just within `max_height`, where not 0.
  /// Requires: every rank reaches every other; a graph that outlives the oracle.
  TreeOracle(const OrbitGraph& orbits, TreeGroups groups, std::uint32_t max_height = 0);

  /// How far the farthest rank is from any group's root.
  [[nodiscard]] std::uint32_t min_height() const;

  /// A tree as a column of a group. Requires: the edges of a spanning tree of the group's root, path after path from
  /// rank to rank, in the direction of the data.
  [[nodiscard]] Column column(std::uint32_t group, std::vector<std::uint32_t> edges) const;

  [[nodiscard]] MasterProgram program() const;
  [[nodiscard]] const TreeGroups& groups() const { return groups_; }
  [[nodiscard]] PricedColumns<double> cheapest(std::span<const double> prices) const override;
  [[nodiscard]] PricedColumns<BigInteger> cheapest(std::span<const BigInteger> prices) const override;
  /// Two trees per group, with a price on depth that is `weight` times what an edge from rank to rank costs on average:
  /// one grown from the root that pays for every step that a rank is deeper than it has to be, and the cheapest one
  /// when every edge that leads no farther from the root pays.
  [[nodiscard]] PricedColumns<double> shallow(std::span<const double> prices, double weight) const override;

 private:
  const OrbitGraph& orbits_;
  TreeGroups groups_;
  std::uint32_t max_height_;
  std::vector<std::vector<std::uint32_t>> hops_;  ///< By group: edges from rank to rank between the root and each rank.
};

}  // namespace espalier::planners
