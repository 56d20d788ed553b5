#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace espalier {

/// Deals what enters a switch out to what leaves it as evenly as whole numbers allow: entry [i][j] of the result goes
/// from the i-th way in to the j-th way out, rows sum to `in`, columns to `out`, and nothing returns to the group of
/// neighbours it came from (`in_groups[i] == out_groups[j]`). Empty when that is impossible.
/// Requires: equal sums. Cost: a few maximum flows on a graph of the ways.
std::vector<std::vector<std::int64_t>> even_split(std::span<const std::int64_t> in,
                                                  std::span<const std::uint32_t> in_groups,
                                                  std::span<const std::int64_t> out,
                                                  std::span<const std::uint32_t> out_groups);

}  // namespace espalier
