#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rational.h"
#include "planners/lp/column_generation.h"

namespace espalier::planners {

/// Good packings of these columns alone that use at most so many of each group, one packing for each of these numbers:
/// from the best packing of all of them, the least used column of the group that has too many is struck out, again and
/// again, and after a while those that the group does not use, too. Exact amounts, no prices; `limit` is what it
/// reaches. Fewer of them when a group has no column, or Clp fails.
/// Requires: numbers that fall, 1 at least.
std::vector<ColumnSolution> pack_few_columns(const MasterProgram& program, const std::vector<Column>& columns,
                                             std::span<const std::uint32_t> max_per_group);

/// Columns with exact amounts.
struct RoundedPacking {
  Rational reached;
  std::vector<ColumnSolution::Part> parts;
};

/// Columns that get whole shares, out of `whole` for each group; as much of all as fits. Nothing where no column takes
/// any resource. Requires: equal sharing.
std::optional<RoundedPacking> pack_shares(const MasterProgram& program, std::span<const Column> columns,
                                          std::span<const std::int64_t> shares, std::int64_t whole);

/// The same for amounts, by column, in small fractions of what each group carries, without those below a share of it.
std::optional<RoundedPacking> round_packing(const MasterProgram& program, std::span<const Column> columns,
                                            std::vector<double> amounts, double min_share);

}  // namespace espalier::planners
