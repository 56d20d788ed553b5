#pragma once

// Tested by: tests/unit/compare/read/nccl_tests_test.cpp

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/read/measurements.h"

namespace espalier::compare::nccl_tests {

/// The bandwidths of one row, as they are printed.
struct PrintedRates {
  std::string algbw;
  std::string busbw;
};

/// Whether a row has more bus than algorithm bandwidth, which only an all_reduce of three ranks or more has.
bool are_of_all_reduce(const std::vector<PrintedRates>& rows);

/// The numbers of ranks for which bus bandwidth over algorithm bandwidth is what all these rows have, given that they
/// were rounded when they were printed: 2(n-1)/n in an all_reduce, (n-1)/n where each rank moves a shard.
/// Nothing where the collective has no such factor, or the rows do not agree.
/// Source: nccl-tests, doc/PERFORMANCE.md.
std::optional<RankRange> implied_ranks(std::string_view collective, const std::vector<PrintedRates>& rows);

}  // namespace espalier::compare::nccl_tests
