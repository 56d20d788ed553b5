#pragma once

// Tested by: tests/unit/planners/packing/split/even_split_test.cpp

#include <cstdint>
#include <vector>

namespace espalier::planners {

/// One side of a switch: the edges into it, or out of it.
struct SwitchSide {
  std::vector<std::int64_t> amounts;      ///< Capacity of each edge.
  std::vector<std::uint32_t> neighbours;  ///< Where it comes from or leads to; nothing returns there.
};

/// Deals what enters a switch out to what leaves it as evenly as whole numbers allow: entry [i][j] of the result goes
/// from the i-th edge in to the j-th edge out, rows sum to the amounts in, columns to the amounts out. Empty when that
/// is impossible. Requires: equal sums. Cost: a few maximum flows on a graph of the edges.
std::vector<std::vector<std::int64_t>> even_split(const SwitchSide& in, const SwitchSide& out);

}  // namespace espalier::planners
