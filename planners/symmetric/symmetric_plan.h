#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <memory>
#include <vector>

#include "base/result.h"
#include "planners/bounds/bound.h"
#include "planners/bounds/bound_prices.h"
#include "planners/chunking.h"
#include "planners/lp/orbit_graph.h"
#include "planners/plan_context.h"
#include "schedule/schedule.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::planners {

class SharedFold;

/// A plan for a network whose ranks are all alike, of which only what begins or ends with rank 0 is written down: the
/// plan is this part and its images under the shifts, one for each rank (docs/symmetric.md).
struct SymmetricPlan {
  Collective collective;
  /// What rank 0's shard does: an all_gather or reduce_scatter in which only rank 0 has a share, or an all_reduce of
  /// one shard. It passes `verify`, and with it the whole plan does: images of schedules under automorphisms are
  /// schedules, and the shards of different ranks are different bytes.
  Schedule part;
  Bound bound;                     ///< Of the whole.
  std::vector<BoundPrice> prices;  ///< What binds.
  std::shared_ptr<const OrbitGraph> orbits;
  std::shared_ptr<SharedFold> folds;  ///< Of all plans with these orbits (folded_network.h).

  [[nodiscard]] std::uint64_t transfer_count() const { return part.transfers.size() * collective.rank_count; }
};

/// Why these are asked for where nothing smaller will do: fewer ranks have plans that are written down.
inline constexpr std::size_t min_symmetric_ranks = 2049;

/// Whether there is a symmetric plan of a collective: all_gather, reduce_scatter and all_reduce of equal shards.
[[nodiscard]] bool has_symmetric_plan(const Collective& collective);

/// The bound of a symmetric plan, without the plan. Errors and requirements as there.
Result<PricedBound> symmetric_bound(const Topology& topology, const Collective& collective,
                                    const PlanContext& context = {});

/// The best packing of trees, all_reduce as a reduce_scatter and an all_gather, which on such networks no trees beat.
/// Verified. The symmetry is that of the nodes' names (name_shifts.h), or found by search (rank_symmetry.h) where the
/// network is small enough for that.
/// Errors: unsupported where ranks are not alike or this collective has no such plan; infeasible where a rank cannot be
/// reached; too_large as schedule_from_trees. Requires: no parallel links (topology/bundles.h).
/// Cost: a shortest-path search of the network per round of the program, then linear in ranks x trees.
Result<SymmetricPlan> plan_symmetric(const Topology& topology, const Collective& collective,
                                     const PlanContext& context = {});

/// The same collective by one tree per rank, that of the links that take least of the machine's time, in which no rank
/// has more than one child at a join: what the planner tree is past the size at which it looks at all routes.
/// Errors: too_large as schedule_from_trees.
Result<SymmetricPlan> plan_symmetric_tree(const SymmetricPlan& packing, const Topology& topology);

/// The same, each shard going round a path through all ranks: what the planner ring is where its rings cannot be
/// walked. Every rank's path is a shift of rank 0's. Errors: as above.
Result<SymmetricPlan> plan_symmetric_path(const SymmetricPlan& packing, const Topology& topology);

/// The same, each shard in parts that go round rings of their own (make_shift_rings): what nccl/ring is there.
Result<SymmetricPlan> plan_symmetric_rings(const SymmetricPlan& packing, const Topology& topology);

/// As compute_loads(...).time_per_byte of the whole plan.
Rational time_per_byte(const SymmetricPlan& plan, const Topology& topology);

/// The whole plan as a schedule; transfer i of the part becomes transfers i x ranks to (i + 1) x ranks - 1.
/// Errors: too_large past the limits of schedule.h.
Result<Schedule> written_out(const SymmetricPlan& plan, const Topology& topology);

/// Whether the shifts still take every link and node of a changed topology to a like one, as folding requires.
bool is_alike(const SymmetricPlan& plan, const Topology& topology);

/// The choice of a chunk for the whole.
ChunkModel chunk_model(const SymmetricPlan& plan, const Topology& topology);

}  // namespace espalier::planners
