#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <cstdint>
#include <vector>

#include "planners/symmetric/shift_chain.h"
#include "planners/symmetric/symmetric_plan.h"

namespace espalier::planners {

/// A path that a symmetric plan uses, moved by a shift so that it begins at rank 0.
struct ShiftPath {
  std::uint32_t to = 0;
  std::vector<std::uint32_t> edges;
  double latency = 0;  ///< Seconds over all of its links.
};

/// One slice of rank 0's shard as a tree: what it is spread along, or inward what it is summed along.
struct SliceTree {
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t slice = 0;
  bool is_inward = false;
  std::vector<std::uint32_t> parent;  ///< By rank; none of rank 0, the root.
  std::vector<std::uint32_t> path;    ///< By rank: which of the paths joins it with its parent.
};

/// The trees that a part is made of, and the paths that these use.
struct PartTrees {
  std::vector<ShiftPath> paths;
  std::vector<std::vector<std::uint32_t>> paths_to;  ///< By rank where they end.
  std::vector<SliceTree> trees;
};

/// Requires: a part whose transfers make trees, as plan_symmetric's do.
PartTrees find_part_trees(const SymmetricPlan& plan, const Shifts& shifts, const Topology& topology);

/// Adds to the paths, wherever some end and where they would the other way round, one more that has as few of their
/// links as there can be, and of these the shortest. Cost: a search of the network per rank where paths end.
void add_detours(PartTrees& parts, const Shifts& shifts, const Topology& topology);

}  // namespace espalier::planners
