#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <memory>
#include <vector>

#include "base/rational.h"
#include "planners/lp/column_generation.h"
#include "planners/lp/flow_oracle.h"
#include "planners/lp/orbit_graph.h"
#include "planners/plan_context.h"
#include "schedule/collective.h"

namespace espalier::planners {

/// Which blocks all_to_all or send_recv sends: a unit has S / blocks_per_buffer bytes.
struct FlowDemands {
  std::vector<FlowDemand> demands;  ///< By source rank.
  bool keeps_symmetry = false;      ///< Any automorphism of the ranks makes the same demands.
  std::int64_t blocks_per_buffer = 1;
  bool mirrors_itself = false;  ///< Targets sending to sources is the same problem.
};

/// Of a traffic matrix a unit is one of its shares, and ranks that send nothing to others have no demand.
/// Requires: all_to_all or send_recv; two ranks or more.
FlowDemands flow_demands(const Collective& collective);

/// The program behind the bounds of all_to_all and send_recv, and its solution.
struct FlowProgram {
  std::shared_ptr<const OrbitGraph> orbits;
  std::vector<FlowDemand> demands;  ///< Of the first source of every orbit.
  ColumnSolution solution;
  Rational time_per_byte;  ///< Seconds per byte of S that no routing of all blocks can undercut.
};

/// How far from the limit a solution may be where the program is too large to be solved exactly, and whether it is
/// small enough for that: 512 orbits of ranks, 8,192 of resources, and a million edges to pass when all paths are
/// priced.
inline constexpr double near_flow_gap = 0.01;
inline bool is_near_flow_size(const OrbitGraph& orbits) {
  constexpr std::size_t max_rank_orbits = 512;
  constexpr std::size_t max_resource_orbits = 8192;
  constexpr std::size_t max_edges_passed = 1'000'000;
  return orbits.ranks.count() <= max_rank_orbits && orbits.resources.count() <= max_resource_orbits &&
         orbits.ranks.count() * orbits.graph.edges.size() <= max_edges_passed;
}

/// Requires: every rank reaches every other; a graph without automorphisms unless the demands keep symmetry, and not
/// mirrored unless they mirror themselves.
FlowProgram solve_flow(std::shared_ptr<const OrbitGraph> orbits, const FlowDemands& demands, const ColumnLimits& limits,
                       const PlanContext& context = {});

}  // namespace espalier::planners
