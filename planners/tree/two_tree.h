#pragma once

// Tested by: tests/unit/planners/tree/tree_test.cpp

#include <cstddef>
#include <vector>

namespace espalier::planners {

/// Two binary trees over the places 1, 2, ..., n-1 under a source at place 0, by parent: places with children in one
/// tree are leaves of the other, so that with half of the data in each every place sends and receives all of it once.
/// Entry 0 of a tree is 0. The depth is at most ceil(log2 n) + 1. Source: P. Sanders, J. Speck, J. L. Traeff, "Two-tree
/// algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing 35(12), 2009: in-order numbered
/// trees, the second one mirrored or shifted by one.
struct TwoTree {
  std::vector<std::size_t> first;
  std::vector<std::size_t> second;
};
TwoTree make_two_tree(std::size_t n);

}  // namespace espalier::planners
