#pragma once

#include <optional>

#include "base/rational.h"
#include "planners/program/pattern_program.h"
#include "planners/program/resource_graph.h"
#include "topology/topology.h"

namespace espalier {

/// The program behind all_reduce's bound, and its solution.
struct AllReduceProgram {
  ResourceGraph graph;
  PatternSolution solution;
  Rational time_per_byte;  ///< Seconds per byte of S that no pair of trees can undercut.
};

/// Nothing past the written limits: 64 ranks, 640 links (a duplex cable counting once) and backplanes.
/// Requires: every rank reaches every other; two ranks or more.
std::optional<AllReduceProgram> solve_all_reduce(const Topology& topology);

}  // namespace espalier
