#pragma once

// Tested by: tests/unit/schedule/interpret_test.cpp

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace espalier {

/// One rank's buffer: a value per unit of the schedule's buffer.
using UnitValues = std::vector<std::int64_t>;

/// The meaning of a schedule: runs its transfers in program order, one at a time, on one value per unit and rank,
/// adding (modulo 2^64) for reduce. `buffers` has one entry per rank and is changed in place; relays begin with
/// nothing, to which the first reduction adds as a copy would. The reference that the simulator and the engine are
/// compared with. Requires: a schedule that keeps rules S1 and S2; rank_count buffers of `units` values.
void interpret(const Schedule& schedule, std::vector<UnitValues>& buffers);

/// Buffers before and after a collective.
struct InterpretCase {
  std::vector<UnitValues> before;          ///< What each rank brings; other values are noise that no result may show.
  std::vector<UnitValues> after;           ///< What the collective promises.
  std::vector<std::vector<bool>> defined;  ///< Where it promises something.
};

/// A case for this schedule's collective with values from `seed`. Requires: as interpret.
InterpretCase make_interpret_case(const Schedule& schedule, std::uint64_t seed);

/// Whether buffers hold what the case promises; noise may be left anywhere else.
bool keeps_promise(const InterpretCase& expected, const std::vector<UnitValues>& buffers);

}  // namespace espalier
