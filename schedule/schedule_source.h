#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "base/units.h"
#include "schedule/schedule.h"

namespace espalier {

/// A schedule for one message size, and the chunk that it is to be executed with.
struct SourcedSchedule {
  std::shared_ptr<const Schedule> schedule;
  Bytes chunk;  ///< Zero: the executing side chooses.
};

/// Gives the schedule of a collective at a message size: the same on every rank, and one that verifies.
using ScheduleSource = std::function<Result<SourcedSchedule>(const Collective&, Bytes size)>;

}  // namespace espalier
