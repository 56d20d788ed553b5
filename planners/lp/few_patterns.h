#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rational.h"
#include "planners/lp/pattern_program.h"

namespace espalier {

/// A good packing of these patterns alone that uses at most `most_per_group` of each group: from the best packing of
/// all of them, the least used pattern of the group that has too many is struck out, again and again. Exact amounts, no
/// prices; `limit` is what it reaches. Nothing when a group has no pattern, or Clp fails.
std::optional<PatternSolution> pack_few_patterns(const PatternProgram& program, const std::vector<Pattern>& patterns,
                                                 std::uint32_t most_per_group);

/// Patterns with exact amounts.
struct RoundedPacking {
  Rational reached;
  std::vector<PatternSolution::Part> parts;
};

/// Amounts, by pattern, in small fractions of what each group carries, without those below a share of it; as much of
/// all as fits. Nothing where no pattern takes any resource. Requires: equal sharing.
std::optional<RoundedPacking> round_packing(const PatternProgram& program, std::span<const Pattern> patterns,
                                            std::vector<double> amounts, double least_share);

}  // namespace espalier
