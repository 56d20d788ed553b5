#pragma once

// Tested by: tests/unit/planners/packing/improve/tree_exchange_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "planners/graph/work_budget.h"
#include "planners/packing/find/growing_trees.h"

namespace espalier::planners {

/// Complete trees of one root whose ranks change places until all are within a depth.
///
/// Two kinds of moves keep the arcs within their room: a rank gets another parent along arcs that have room, and a rank
/// swaps what enters it in two trees of equal weight. A move that brings more ranks within the depth is made, one that
/// changes nothing too, and one that loses a little now and then.
class TreeExchange {
 public:
  /// Requires: complete trees, whose network must outlive the exchange.
  explicit TreeExchange(const GrowingTrees& grown);

  /// Whether all ranks are within `max_depth` after at most as many moves as the budget allows: it counts the ranks
  /// that they move.
  bool reach(std::uint32_t max_depth, WorkBudget& budget);
  [[nodiscard]] std::vector<ParentTree> trees() const;

  // For reparent.
  void use(const ParentTree& tree, const std::vector<std::uint32_t>& path, int sign);
  std::optional<TreeEntry> choose(const ReparentedTree& tree, std::uint32_t rank);

 private:
  [[nodiscard]] std::int64_t excess_of(const ParentTree& tree) const;
  /// What the excess changes by when a rank enters elsewhere; nothing is changed.
  [[nodiscard]] std::int64_t gain(const ReparentedTree& tree, std::uint32_t rank, std::uint32_t parent);
  /// Whether a move that changes the excess by so much is made; counts it then.
  [[nodiscard]] bool accepts(std::int64_t worse);
  void try_swap(std::uint32_t t, std::uint32_t rank);

  const FlowNetwork& network_;
  std::vector<std::int64_t> room_;  ///< By arc.
  std::vector<ReparentedTree> trees_;
  std::vector<std::uint32_t> seen_;  ///< By vertex: the last walk that came there.
  std::uint32_t stamp_ = 0;
  std::uint32_t max_depth_ = 0;
  std::int64_t excess_ = 0;
  std::int64_t moved_ = 0;  ///< Ranks that the last move looked at.
  std::int64_t moves_ = 0;
  Random random_{1};
};

}  // namespace espalier::planners
