#pragma once

// Tested by: tests/unit/schedule/trees/strands_test.cpp

#include <cstdint>

#include "schedule/schedule.h"

namespace espalier {

/// The schedule with a buffer of at most so many units: slices end at the nearest unit below, so that each is shorter
/// or longer by less than one. As it is where it has no more, where a part of the buffer would be no whole number of
/// them, or a slice none. Requires: a schedule whose structure is right.
Schedule with_coarser_units(Schedule schedule, std::int64_t most);

}  // namespace espalier
