#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/unit.h"

namespace espalier::sweep {

/// One of several parts of a sweep, counted from 1.
struct Shard {
  std::uint32_t number = 1;
  std::uint32_t count = 1;
};

/// "3/8". Errors: invalid_input, naming the flag --shard.
Result<Shard> parse_shard(std::string_view text);

/// Leaves only the rows of one shard. Each row is in exactly one, decided by the sweep alone. Rows of one plan stay
/// together where there are several plans for every shard, so that each is made once; else rows are dealt one by one.
void keep_shard(std::vector<Unit>& units, const Shard& shard);

}  // namespace espalier::sweep
