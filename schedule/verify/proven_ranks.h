#pragma once

// Tested by: tests/unit/schedule/verify/verify_test.cpp

#include <cstddef>

namespace espalier {

/// What `verify` proves at most: schedules that copy, and sums that are added up along trees. Other sums take a bit for
/// each pair of ranks, and are proven of no more than max_ranks.
inline constexpr std::size_t max_proven_ranks = std::size_t{1} << 18;

}  // namespace espalier
