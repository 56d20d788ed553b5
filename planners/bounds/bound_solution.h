#pragma once

#include <memory>
#include <optional>

#include "planners/bounds/cut_bound.h"
#include "planners/lp/all_reduce_program.h"

namespace espalier::planners {

/// What a bound was found by, for a plan of the same collective on the same network (with parallel links bundled) to go
/// on from. What the bound did not need is left out.
struct BoundSolution {
  std::shared_ptr<const FlowCut> cut;                  ///< Of the collective, but of all_reduce.
  std::optional<AllReduceFloors> floors;               ///< Of all_reduce, with the cuts of its halves.
  std::shared_ptr<const AllReduceProgram> all_reduce;  ///< The best pairs of trees.
};

}  // namespace espalier::planners
