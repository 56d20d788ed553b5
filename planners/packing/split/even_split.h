#pragma once

#include <cstdint>
#include <vector>

namespace espalier {

/// One side of a switch: the ways into it, or out of it.
struct SwitchSide {
  std::vector<std::int64_t> amounts;  ///< Capacity of each way.
  std::vector<std::uint32_t> groups;  ///< To which group of neighbours it leads; nothing is dealt within a group.
  std::vector<std::uint32_t>
      places;  ///< Its neighbour's place in the group; only equal places are dealt to each other.
};

/// Deals what enters a switch out to what leaves it as evenly as whole numbers allow: entry [i][j] of the result goes
/// from the i-th way in to the j-th way out, rows sum to the amounts in, columns to the amounts out. Empty when that is
/// impossible.
/// Requires: equal sums. Cost: a few maximum flows on a graph of the ways.
std::vector<std::vector<std::int64_t>> even_split(const SwitchSide& in, const SwitchSide& out);

}  // namespace espalier
