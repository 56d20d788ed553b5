#pragma once

// Tested by: tests/unit/planners/bounds/cut_bound_test.cpp

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/cut_rate.h"
#include "planners/graph/logical_graph.h"
#include "planners/lp/orbit_graph.h"
#include "schedule/collective.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A network to plan on, and what bounds and planners ask of it: each answer is computed once, when first asked for.
///
/// An answer depends on the network and the question alone, not on who asked before. Several threads may ask at once.
class PlanningProblem {
 public:
  /// Not explicit, so that a topology can be planned on as it is. It must outlive the problem.
  PlanningProblem(const Topology& topology) : PlanningProblem(topology, topology) {}
  /// Made of a machine with the same ranks, which must outlive the problem as well.
  PlanningProblem(const Topology& topology, const Topology& machine) : topology_(topology), machine_(machine) {}

  [[nodiscard]] const Topology& topology() const { return topology_; }
  /// Before parallel links became one and ways that software does not take were left out.
  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] const FlowNetwork& flow_network(Direction direction) const;
  /// The same network, or the one with every link turned round.
  [[nodiscard]] const Topology& topology(Direction direction) const;
  /// Hops on `topology(direction)`.
  [[nodiscard]] const LogicalGraph& logical_graph(Direction direction, Bytes size, std::uint32_t variants) const;
  /// The cut that limits an all_gather, reduce_scatter, broadcast, reduce, gather or scatter, in the flow network of
  /// its direction. Requires: as for cut_rate.h.
  [[nodiscard]] const CutRate& tightest_cut(const Collective& collective) const;
  /// all_reduce_floors.
  [[nodiscard]] const Result<AllReduceFloors>& floors() const;
  /// make_orbit_graph; the symmetry is searched once, whether or not mirrored edges are folded.
  [[nodiscard]] std::shared_ptr<const OrbitGraph> orbit_graph(bool fold, Symmetry symmetry,
                                                              std::span<const std::int64_t> marks = {}) const;
  /// Automorphisms that generate the groups that planners work with, as maps of ranks.
  [[nodiscard]] std::vector<std::vector<Rank>> automorphic_ranks() const;

 private:
  struct KnownCut {
    Collective collective;
    CutRate rate;
  };
  struct KnownSymmetry {
    Symmetry kind;
    std::vector<std::int64_t> marks;
    RankSymmetry found;
    std::array<std::shared_ptr<const OrbitGraph>, 2> graphs;  ///< Not folded, and folded.
  };

  struct KnownGraph {
    Direction direction;
    Bytes size;
    std::uint32_t variants;
    LogicalGraph graph;
  };

  const Topology& topology_;
  const Topology& machine_;
  mutable std::recursive_mutex mutex_;
  mutable std::optional<Topology> turned_;
  mutable std::deque<KnownGraph> graphs_;
  mutable std::array<std::optional<FlowNetwork>, 2> networks_;  ///< Forward, and reversed.
  mutable std::deque<KnownCut> cuts_;
  mutable std::deque<KnownSymmetry> symmetries_;
  mutable std::optional<Result<AllReduceFloors>> floors_;
};

}  // namespace espalier::planners
