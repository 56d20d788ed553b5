#pragma once

#include <cstdint>
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
  /// Whether the result is all that is wanted: the executing side may then get it by another way that it knows to be
  /// faster. False: this schedule is to be executed, whatever it costs.
  bool may_be_replaced = false;
  std::uint32_t ahead = 0;  ///< Pacing::ahead.
};

/// Gives the schedule of a collective at a message size: the same on every rank. The executing side proves each before
/// it runs it, once.
using ScheduleSource = std::function<Result<SourcedSchedule>(const Collective&, Bytes size)>;

}  // namespace espalier
