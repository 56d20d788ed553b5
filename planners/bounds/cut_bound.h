#pragma once

// Tested by: tests/unit/planners/bounds/cut_bound_test.cpp

#include <optional>

#include "base/rational.h"
#include "base/result.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

class PlanningProblem;

// Bounds that a cut of the network proves; docs/bounds.md has each formula and why it holds. A bound's cut is a set of
// nodes whose leaving (or entering, `what` says which) bandwidth is the limit; a node with a backplane lets at most
// that through. Bounds also hold where switches copy or add: a part has to cross a cut once, however often it is copied
// on either side. With one rank nothing moves and every bound is zero.

/// The bound of all_gather, reduce_scatter, broadcast, reduce, gather or scatter by the tightest cut. Of the last two
/// it is exact, a flow reaches it; of the first four where trees_reach_cuts, and else the optimum may take longer.
/// Errors: infeasible when a rank cannot reach another, naming both; unsupported for other collectives.
/// Cost: about one maximum flow per rank; 1,024 ranks take about a second.
Result<Bound> cut_bound(const PlanningProblem& problem, const Collective& collective);

/// Whether trees are known to reach these bounds: as much bandwidth into every node that forwards as out of it, no
/// backplane that its links could fill, and no switch beside ranks that must not relay.
bool trees_reach_cuts(const PlanningProblem& problem);

/// How the network of a collective's cut is read: forward where the cut is left, reversed where it is entered.
Direction cut_direction(CollectiveKind kind);

/// What every all_reduce takes at least, whatever its schedule; not always reachable.
struct AllReduceFloors {
  /// S has to cross the smallest cut that separates ranks, in either direction.
  Bound smallest_cut;
  /// 2(N-1)S has to leave and to enter the ranks together, since so many messages are needed to tell everybody
  /// everything. Where a switch copies or adds, the ranks that it joins count as one (aggregation_bound.h); absent
  /// where all are. Source: F. Harary, A. J. Schwenk, "The communication problem on graphs and digraphs", J. Franklin
  /// Inst. 297, 1974.
  std::optional<Bound> messages;
  /// What a reduce-scatter followed by an all-gather takes at least; no limit of other schedules.
  Rational reduce_scatter_all_gather;

  /// The larger floor.
  [[nodiscard]] const Bound& best() const;
};

/// Sums travel on only where a rank may relay or a switch adds. Else an all_reduce is an exchange of inputs
/// (docs/bounds.md, Lemma 6). Errors: unsupported there.
Result<void> check_somebody_adds(const Topology& topology);

/// Errors: infeasible when a rank cannot reach another, naming both; as check_somebody_adds.
Result<AllReduceFloors> all_reduce_floors(const PlanningProblem& problem);

}  // namespace espalier::planners
