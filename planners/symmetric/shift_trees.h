#pragma once

// Tested by: tests/property/planners/symmetric_test.cpp

#include <cstdint>
#include <vector>

#include "planners/symmetric/shift_chain.h"

namespace espalier::planners {

/// A tree of rank 0 whose edges are the shifted paths of a few steps.
struct ShiftTree {
  struct Step {
    std::uint32_t shift = 0;
    std::vector<std::uint32_t> edges;  ///< From rank 0 to this rank.
  };
  struct TreeEdge {
    std::uint32_t parent = 0;
    std::uint32_t step = 0;
  };
  std::vector<Step> steps;
  std::vector<TreeEdge> edges;  ///< Every one after the one that enters its parent; children are parent + shift.
};

/// What a column of the ShiftOracle stands for, made low: where the shifts of one subgroup all have paths of the same
/// loads, cosets are joined by stars of up to `max_children`, instead of one after the other. The loads are the
/// column's, whatever the tree's form: all images of an edge load like links alike. The far cosets are joined first.
/// Requires: max_children > 0.
ShiftTree make_shift_tree(const Shifts& shifts, const Column& column, std::uint32_t max_children);

/// The same column as a path through all ranks: the steps of the inmost subgroup as often as they lead on, then one of
/// the next, and so on.
ShiftTree make_shift_path(const Shifts& shifts, const Column& column);

/// That path as up to `most` paths, each of which has done another number of the first steps before it begins: parts of
/// rings that meet at all ranks, as software cuts them, so that not all parts leave a machine at the same step. The one
/// path alone where that does not lead through all ranks.
std::vector<ShiftTree> make_shift_rings(const Shifts& shifts, const Column& column, std::uint32_t most);

/// The edges of all paths away from rank 0, path after path in the direction of the data.
std::vector<std::uint32_t> outward(const Shifts& shifts, const ShiftTree& tree);
/// Of the tree that leads to rank 0 and loads every link as the other does: rank r stands where -r stood, so that the
/// path from a child to its parent is a shift of the same step.
std::vector<std::uint32_t> inward(const Shifts& shifts, const ShiftTree& tree);

}  // namespace espalier::planners
