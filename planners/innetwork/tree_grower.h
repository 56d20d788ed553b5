#pragma once

// Tested by: tests/unit/planners/innetwork/innetwork_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// One edge of a tree over ranks and switches that compute: a route whose inner nodes only forward.
struct RelayHop {
  NodeId parent;
  NodeId child;
  std::vector<LinkId> links;  ///< In the direction of the data.
  friend bool operator==(const RelayHop&, const RelayHop&) = default;
};

/// A tree that reaches all ranks; its other nodes are switches that copy (out-trees) or add (in-trees).
struct RelayTree {
  NodeId root;
  std::vector<RelayHop> hops;  ///< Each after the one that leads to its parent.
  friend bool operator==(const RelayTree&, const RelayTree&) = default;
};

/// What trees fill: links by id, then the backplanes of nodes that have one.
struct RelayResources {
  explicit RelayResources(const Topology& topology);

  /// Adds one use of everything that a tree takes: links, and the backplanes of nodes that it enters, leaves or passes.
  void add_uses(const RelayTree& tree, const Topology& topology, std::vector<std::int64_t>& uses) const;

  std::vector<std::int64_t> rates;        ///< By resource, bytes per second.
  std::vector<std::uint32_t> backplanes;  ///< By node; `none` where there is none.
  static constexpr std::uint32_t none = UINT32_MAX;
};

/// Grows cheap trees: from the root, always to the rank that is cheapest to reach from what has been reached, branching
/// at ranks and at switches that compute. Of equal costs the path with the fewest links from the root is taken.
///
/// Such trees are at most twice as dear as the cheapest where all links cost the same in both directions.
/// Source: H. Takahashi, A. Matsuyama: An approximate solution for the Steiner problem in graphs. Math. Japonica 24,
/// 1980.
class TreeGrower {
 public:
  /// Out-trees (forward) branch at switches with `multicast`, in-trees (reversed) at those with `reduction`.
  TreeGrower(const Topology& topology, const RelayResources& resources, Direction direction);

  /// A tree of this root, or nothing when a rank is out of its reach. Requires: a price per resource, none negative.
  /// Cost: O((nodes + links) log nodes), in practice.
  [[nodiscard]] std::optional<RelayTree> grow(NodeId root, std::span<const double> prices) const;

 private:
  class Growth;
  [[nodiscard]] RelayTree without_mere_passages(RelayTree tree) const;

  const Topology& topology_;
  const RelayResources& resources_;
  Direction direction_;
  std::vector<bool> branches_;  ///< By node.
};

}  // namespace espalier::planners
