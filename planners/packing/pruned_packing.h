#pragma once

// Tested by: tests/property/planners/pruned_packing_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "planners/bundled_network.h"
#include "planners/plan_context.h"
#include "schedule/schedule.h"
#include "schedule/schedule_shape.h"

namespace espalier::planners {

/// What a packing's trees may be, where throughput is not everything. Zeros are no limit.
struct PackingLimits {
  std::uint32_t max_trees = 0;    ///< Per root; a tree that is split over parallel links still counts once.
  std::uint32_t max_height = 0;   ///< Edges from rank to rank between a root and any rank.
  std::uint32_t equal_trees = 0;  ///< So many trees per root, of equal weight (some may be the same tree).
  bool exact = false;             ///< The best throughput, however many trees a root needs for it.
  Rational gap = 0;               ///< Up to this part may be lost to the best packing where trees get lower or fewer.

  [[nodiscard]] bool any() const { return max_trees != 0 || max_height != 0 || equal_trees != 0 || exact || gap != 0; }
};

/// A packing within limits: the best that the linear program over the trees met finds, which is good and not proven
/// best; equal trees without a limit on their height are the best there are (equal_packing.h). all_reduce is a
/// reduce_scatter and an all_gather.
/// Errors: unsupported for collectives that are not packed and for unequal shards, or below the least height; too_large
/// where the network has too little symmetry for its size; infeasible when a rank cannot reach another.
Result<Schedule> plan_pruned_packing(const PlanningProblem& problem, const Collective& collective,
                                     const PackingLimits& limits, const PlanContext& context = {});

/// A packing that no other one of a set beats in throughput, height and number of trees at once.
struct PackingPoint {
  Schedule schedule;
  Rational time_per_byte;
  ScheduleShape shape;
};

/// Such packings besides `best`, which is the packing with the best throughput: lower ones and fewer trees, the fastest
/// first; none where there is too little symmetry for the network's size. What is made does not depend on the threads.
/// Requires: a packing of this collective on this topology.
std::vector<PackingPoint> pareto_packings(const BundledNetwork& network, const Schedule& best, unsigned threads = 1);

}  // namespace espalier::planners
