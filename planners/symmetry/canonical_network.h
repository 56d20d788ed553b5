#pragma once

#include <memory>
#include <vector>

#include "planners/planning_problem.h"
#include "schedule/collective.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A network with nodes, ranks and links in an order that depends on the network alone: networks that differ in names
/// and numbers alone, such as a machine without one or another of its like cables, become the same. So what is planned
/// on it takes as long whichever of like parts failed.
///
/// Ranks of a machine follow each other along the widest links between them; those at one place of different machines
/// are near each other.
class CanonicalNetwork {
 public:
  /// Nothing where all ranks are alike: their own order is as good, and is the one that software has them in. Nothing
  /// for send_recv either, whose ranks are told apart by their numbers, and past 4,096 ranks. The topology must outlive
  /// it. Cost: find_alike; where they are not, canonical_numbers.
  static std::unique_ptr<const CanonicalNetwork> make(const Topology& topology, const Collective& collective);

  [[nodiscard]] const PlanningProblem& problem() const { return *problem_; }
  /// The collective among the ranks in this order.
  [[nodiscard]] const Collective& collective() const { return collective_; }
  /// What was planned here, on the network itself.
  [[nodiscard]] Schedule restore(const Schedule& planned) const;

 private:
  CanonicalNetwork(const Topology& topology, const Collective& collective);

  [[nodiscard]] Rank end_of(Rank end) const;
  [[nodiscard]] std::vector<SliceId> place_slices(const Schedule& planned, Schedule& restored) const;

  Collective wanted_;  ///< Among the network's own ranks.
  Collective collective_;
  std::vector<NodeId> nodes_;  ///< By node here: which it is.
  std::vector<LinkId> links_;  ///< By link here, the same.
  std::vector<Rank> ranks_;    ///< By rank here, the same.
  std::unique_ptr<const Topology> topology_;
  std::unique_ptr<const PlanningProblem> problem_;
};

}  // namespace espalier::planners
