#pragma once

// Tested by: tests/unit/planners/ring/ring_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "planners/graph/residual.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A directed cycle through all ranks and the share of the links it takes.
struct Ring {
  std::vector<Rank> order;  ///< Begins with rank 0.
  std::vector<Path> hops;   ///< hops[i] leads from order[i] to the next one; the last leads back to the first.
  std::int64_t rate = 0;    ///< What it takes of every link of its hops, in bytes per period of its set.
};

/// Rings that together never take more of a link or backplane than it has: edge-disjoint, where each takes whole links.
struct RingSet {
  std::vector<Ring> rings;
  std::int64_t period = 1;  ///< Seconds in which a ring carries `rate` bytes.
  Rational limit;           ///< Bytes per second that no set of rings on this machine exceeds; 0 where there is none.
  bool rounded = false;     ///< Rates were too fine and are rounded down; all together lose less than one per ring.
  /// The rings reach the limit, up to rounding, or there are none and there can be none. False: nothing better was
  /// found, and `limit` is what cuts prove.
  bool is_best = false;

  /// Bytes per second of all rings together: the busbw of what `plan_ring` makes of them, links being the only limit.
  [[nodiscard]] Rational rate() const;
};

/// The best set of rings. Up to 16 ranks it is the best there is, and proven: a cut that no set can pass is reached, or
/// the linear program over all cycles is solved to its end. Past 16 ranks a bounded search, which a cut often proves
/// right. Rings go through switches and NICs, cross machines rail by rail, and take whole links wherever that costs
/// nothing. docs/planners.md tells how it searches.
/// Requires: every rank reaches every other.
/// Cost: milliseconds where a cut is reached, up to a second where the program has to be solved; beyond 16 ranks about
/// ranks x rails x links of a box.
RingSet find_rings(const PlanningProblem& problem);

/// Collectives whose data passes every rank: all_reduce, reduce_scatter, all_gather, broadcast and reduce.
bool goes_round_rings(CollectiveKind kind);

/// One of them over these rings, each with a part of the data in proportion to its rate.
Result<Schedule> schedule_of_rings(const Topology& topology, const Collective& collective, const RingSet& set);

/// all_reduce, reduce_scatter, all_gather, broadcast and reduce over `find_rings`: each ring carries a part of the data
/// in proportion to its rate. Between N ranks in one ring all_reduce takes 2(N-1) steps of S/N bytes.
/// Errors: unsupported for other collectives, or without a cycle through all ranks.
/// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2),
/// 2009.
Result<Schedule> plan_ring(const PlanningProblem& problem, const Collective& collective);

}  // namespace espalier::planners
