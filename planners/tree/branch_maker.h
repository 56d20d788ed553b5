#pragma once

// Tested by: tests/unit/planners/nccl/nccl_collnet_test.cpp

#include <optional>
#include <vector>

#include "planners/tree/spanning_tree.h"

namespace espalier::planners {

/// Adds branches to trees along the least loaded of the routes between two ranks, and remembers the loads.
class BranchMaker {
 public:
  explicit BranchMaker(const TreeDemand& demand);

  /// From now on branches take the `route`-th of their routes, whatever its load: trees that each keep to one plane of
  /// switches share planes evenly, which choosing branch by branch does not.
  void keep_to_route(std::size_t route) { route_ = route; }

  /// False when one direction has no route.
  bool add(SpanningTree& tree, Rank a, Rank b);

  /// The route of one direction alone; null where there is none.
  const Path* take_hop(Rank from, Rank to);

  /// Grows a tree from ranks[0] over all these ranks: always the branch whose fullest link stays least loaded, of equal
  /// ones the one nearest to where the tree began. False when a rank has no route to the others.
  /// Cost: O(ranks^2) branches looked at per rank.
  bool grow(SpanningTree& tree, const std::vector<Rank>& ranks);

 private:
  struct Choice {
    const Hop* there = nullptr;
    const Hop* back = nullptr;
    double load = 0;  ///< Of the fullest link, in seconds per byte of one tree.
  };

  [[nodiscard]] double load_with(const Hop& hop) const;
  [[nodiscard]] const Hop* choose_hop(Rank from, Rank to) const;
  [[nodiscard]] std::optional<Choice> choose(Rank a, Rank b) const;
  void take(SpanningTree& tree, Rank a, Rank b, const Choice& choice);
  void count(const Hop& hop);

  const LogicalGraph& graph_;
  std::optional<std::size_t> route_;
  std::vector<double> share_;  ///< What one tree adds to a link.
  std::vector<double> loads_;
};

}  // namespace espalier::planners
