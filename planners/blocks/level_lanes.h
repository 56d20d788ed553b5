#pragma once

// Tested by: tests/unit/planners/bounds/flow_bound_test.cpp

#include <vector>

#include "base/result.h"
#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"
#include "planners/planning_problem.h"
#include "schedule/collective.h"

namespace espalier::planners {

/// A way between two boxes, from a rank of one to a rank of the other, and the part of what the one sends the other
/// that it takes.
struct Lane {
  Rank from;
  Rank to;
  const Hop* hop = nullptr;
  double share = 0;  ///< Of all lanes of the two boxes; together they are 1.
};

/// How what boxes send each other is spread over all that joins them, whichever ranks it comes from and goes to.
struct LevelLanes {
  RankGroups boxes;
  std::vector<std::vector<Lane>> lanes;  ///< By box that sends, then box that receives.
  std::vector<double> traffic;           ///< The same: shares of the collective that go from one to the other.
  double time_per_byte = 0;              ///< Seconds per byte of S of the fullest link between boxes.

  [[nodiscard]] std::size_t place(std::size_t from, std::size_t to) const { return from * boxes.groups.size() + to; }
};

/// Lanes begin at every rank that has a way to the other box, and end at the rank there that is nearest (on rails the
/// one of the same rail); where these leave some link fuller than `wanted` seconds per byte of S by more than a
/// hundredth, all pairs of ranks. Shares grow where links are empty and shrink where they are full, until no link is
/// fuller than wanted or nothing is gained: multiplicative weights.
/// Errors: unsupported where ranks are not in boxes, or two boxes have no direct way; where some rank must not relay.
/// Source of the weights: N. E. Young, "Sequential and parallel algorithms for mixed packing and covering", FOCS 2001.
Result<LevelLanes> spread_over_lanes(const PlanningProblem& problem, const Collective& collective, double wanted);

}  // namespace espalier::planners
