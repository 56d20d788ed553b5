#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace espalier {

/// How many trees a schedule runs over and how deep they are. A channel counts as a tree, which is what
/// schedule_from_trees makes of one.
struct ScheduleShape {
  std::uint32_t trees = 0;           ///< Channels in use.
  std::uint32_t trees_per_root = 0;  ///< The most channels that carry one rank's slices; all of them without ranks.
  std::uint32_t height = 0;          ///< The longest chain of transfers of one action in one channel, data to data.
};

/// Requires: a schedule whose structure is right (rules S1-S3). Cost: linear in transfers, ranks x channels in the
/// worst case.
ScheduleShape measure_shape(const Schedule& schedule);

}  // namespace espalier
