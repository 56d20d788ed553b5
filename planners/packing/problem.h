#pragma once

// Tested by: tests/unit/planners/packing/reduce/deal_planes_test.cpp

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "planners/bounds/cut_rate.h"
#include "planners/graph/work_budget.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// Whole capacities and demands that stand in the ratio of the best rate.
struct ScaledNetwork {
  std::vector<std::int64_t> capacities;  ///< By arc of the problem's network.
  std::vector<std::int64_t> demands;     ///< By rank: what it is the root of.
};

/// Spanning trees that are to be packed: what every finder is handed. Built once, by make_problem.
struct PackingProblem {
  const PlanningProblem* planning = nullptr;
  Direction direction = Direction::forward;  ///< Forward: out-trees; reversed: in-trees.
  Rank root;                                 ///< None: all ranks are roots.
  std::span<const std::int64_t> shares;      ///< By rank, what all roots carry; empty: all the same.
  const PlanContext* context = nullptr;
  FlowNetwork network;           ///< For one root without what leaves other ranks that must not relay.
  CutRate cut;                   ///< The tightest cut.
  Result<ScaledNetwork> scaled;  ///< too_large where the link rates have too fine a common divisor.

  [[nodiscard]] const Topology& topology() const { return planning->topology(); }
  [[nodiscard]] bool all_roots() const { return root.is_none(); }
  [[nodiscard]] bool all_relay() const { return topology().first_not_relaying().is_none(); }
  [[nodiscard]] bool inward() const { return direction == Direction::reversed; }
  [[nodiscard]] bool has_backplanes() const {
    return std::ranges::any_of(topology().nodes(),
                               [](const Node& node) { return node.bandwidth.bytes_per_second != 0; });
  }
  [[nodiscard]] std::size_t rank_count() const { return topology().rank_count(); }
};

/// Requires: arguments that outlive the packing problem; every rank reaches every other; two ranks or more.
/// Cost: about a maximum flow per rank, unless the cut is known.
PackingProblem make_problem(const PlanningProblem& planning, Direction direction, Rank root,
                            std::span<const std::int64_t> shares, const PlanContext& context);

/// Whether, though switches are not balanced, trees reach the cut all the same: what no rank needs can be trimmed.
/// False where ranks have backplanes that their links could fill, and where that is much work.
bool trims_to_cut(const PackingProblem& problem);

/// The problem's numbers with as much capacity into every switch as out of it: at the full rate where it is enough to
/// trim what no rank needs, else at the best rate of the network with its switches shrunk to balance.
/// Requires: scaled numbers. Errors: unsupported where balance cuts ranks apart, too_large as for make_problem.
Result<ScaledNetwork> balanced(const PackingProblem& problem, WorkBudget& budget);

}  // namespace espalier::planners
