#pragma once

// Tested by: tests/unit/planners/packing/improve/few_trees_test.cpp

#include <cstdint>

#include "planners/lp/column_generation.h"
#include "planners/lp/orbit_graph.h"
#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

/// When a packing has few enough trees, and what it may not become for it.
struct FewTrees {
  std::uint32_t enough = 2;      ///< Columns per group.
  std::uint32_t max_height = 0;  ///< Trees may get as high as this, or as high as the solution's.
  /// What the programs of what is left may cost together (ColumnSolution::work), or little more: a few seconds. Whole
  /// machines need a thousandth of it; one without symmetry may have hundreds of resources and of trees.
  std::int64_t max_work = 1'000'000'000;
};

/// The most columns of one group.
std::uint32_t max_columns(const ColumnSolution& solution);

/// A solution as good with fewer trees, or the same one.
///
/// One tree per group at a time: changed until it uses resources evenly (tree_balance.h), it gets the largest weight
/// with which the rest can still be completed; what is left is a program of the same kind with less room. That weight
/// is found by Newton's method on the prices that prove the rest too small. So one star over p equal planes of
/// switches, whose N-1 edges p does not divide, takes almost all of its root's data, and the rest is one tree more.
/// All in exact numbers. The work of the result is that of the solution and of what this solves.
/// Requires: an attained solution of the oracle's program.
ColumnSolution with_fewer_trees(const OrbitGraph& orbits, const TreeOracle& oracle, const ColumnSolution& solution,
                                const FewTrees& wanted);

}  // namespace espalier::planners
