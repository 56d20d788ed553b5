#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace espalier {

/// One rank's buffer: a value per unit of the schedule's buffer.
using UnitValues = std::vector<std::int64_t>;

/// The meaning of a schedule: runs its transfers in program order, one at a time, on one value per unit and rank,
/// adding (modulo 2^64) for reduce. `buffers` has one entry per rank and is changed in place. The reference that the
/// simulator and the engine are compared with. Requires: a schedule that passes `verify`; rank_count buffers of `units`
/// values.
void interpret(const Schedule& schedule, std::vector<UnitValues>& buffers);

/// Buffers before and after, as the collective promises them, for values `seed`ed per rank and unit. Entries of `after`
/// that the collective leaves open are absent from `defined`.
struct InterpretCase {
  std::vector<UnitValues> before;
  std::vector<UnitValues> after;
  std::vector<std::vector<bool>> defined;
};
InterpretCase make_interpret_case(const Schedule& schedule, std::uint64_t seed);

}  // namespace espalier
