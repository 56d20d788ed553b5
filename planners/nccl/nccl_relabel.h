#pragma once

// Tested by: tests/unit/planners/nccl/nccl_relabel_test.cpp

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"

namespace espalier::planners {

/// Neighbours in a ring or tree; data goes from the first to the second, or both ways.
using Neighbours = std::vector<std::pair<Rank, Rank>>;

/// Finds for rings or trees, one after the other, who takes the place of whom, by rank, so that all neighbours have a
/// direct route: where a GPU has none to another machine, NCCL hands over NVLink to a GPU of its machine that has
/// (PXN), and here the two change places, which gives NICs and cables between machines as much to carry. Of several,
/// the GPU that sends least to other machines so far does.
class RouteRelabelling {
 public:
  /// Both must outlive it.
  RouteRelabelling(const RankGroups& groups, const LogicalGraph& graph);

  /// Each rank takes its own place where nothing is missing. Nothing where that takes a GPU whose own place talks to
  /// other machines. Cost: the neighbours of a pair for each two GPUs of a machine.
  std::optional<std::vector<Rank>> places(const Neighbours& neighbours, bool both_ways);

 private:
  const RankGroups& groups_;
  const LogicalGraph& graph_;
  std::vector<std::uint32_t> sends_;  ///< By rank: to how many in other machines, in all so far.
};

}  // namespace espalier::planners
