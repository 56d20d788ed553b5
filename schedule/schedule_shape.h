#pragma once

// Tested by: tests/unit/schedule/schedule_shape_test.cpp

#include <cstdint>

#include "schedule/schedule.h"

namespace espalier {

/// How many trees a schedule runs over and how high they are. What a channel copies counts as a tree, and what it
/// reduces as another, which is what schedule_from_trees makes of them.
struct ScheduleShape {
  std::uint32_t trees = 0;
  /// The most trees of one rank that carry data to it, or away from it. Trees that join the same ranks alike, over
  /// other links, count as one: a tree that is wider than a link.
  std::uint32_t trees_per_root = 0;
  /// The same with those over other links counted, too, as each needs a part of the data.
  std::uint32_t routed_trees_per_root = 0;
  std::uint32_t height = 0;  ///< The longest chain of transfers of one tree.
};

/// Requires: a schedule whose structure is right (rules S1-S3). Cost: linear in transfers.
ScheduleShape measure_shape(const Schedule& schedule);

}  // namespace espalier
