#pragma once

// Tested by: python/tests/behaviour.py

#include <memory>

#include "schedule/parts.h"
#include "schedule/schedule_source.h"

namespace espalier::python {

/// The schedules of a job of one rank, which sends nothing: no topology has a single rank.
inline Result<SourcedSchedule> schedule_of_lone_rank(const Collective& collective, Bytes) {
  auto schedule = std::make_shared<Schedule>();
  schedule->collective = collective;
  schedule->units = 1;
  const PartRanks ranks = ranks_of_part(collective, 0);
  schedule->slices.push_back({0, 1, ranks.rank, ranks.to});
  schedule->algorithm = "alone";
  return SourcedSchedule{std::move(schedule), Bytes{}, false, 0};
}

}  // namespace espalier::python
