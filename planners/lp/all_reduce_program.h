#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <memory>

#include "base/rational.h"
#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/tree_oracle.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"

namespace espalier::planners {

/// The program behind all_reduce's bound, and its solution.
struct AllReduceProgram {
  std::shared_ptr<const OrbitGraph> orbits;
  TreeGroups groups;
  ColumnSolution solution;
  Rational time_per_byte;  ///< Seconds per byte of S that no pair of trees can undercut.
  bool is_near =
      false;  ///< Not solved: trees of equal weight near a limit (even_trees.h), on a graph without symmetry.
};

/// Solved up to 640 orbits of links (a duplex cable counting once) and backplanes and 64 orbits of ranks; near up to
/// 1,024 ranks, and where no solution was found within the limits. Nothing past that, and where no rank may relay.
/// Requires: every rank reaches every other; two ranks or more.
std::shared_ptr<const AllReduceProgram> solve_all_reduce(const PlanningProblem& problem,
                                                         const PlanContext& context = {});

}  // namespace espalier::planners
