#pragma once

// Tested by: tests/unit/cli/measured/measured_path_test.cpp

#include <string>
#include <vector>

#include "base/result.h"
#include "schedule/schedule.h"
#include "schedule/timeline/timeline.h"
#include "sim/critical_path/path_times.h"
#include "topology/topology.h"

namespace espalier::cli {

/// What the last byte of a recorded run waited for, in the words of a simulated one.
struct MeasuredPath {
  std::vector<sim::PathTime>
      times;  ///< Sums to the time from the first span's begin to the last one's end; most first.
  std::size_t steps = 0;
};

/// The critical path of a timeline (docs/compare.md) in the words of a simulated one (docs/command-line.md, "Where a
/// measured run's time went"): moving, reducing, launch and messages. `schedule`: what ran, where that is known.
/// Errors: invalid_input where the timeline is of other ranks than the topology's.
Result<MeasuredPath> find_measured_path(const Timeline& timeline, const std::string& file, const Topology& topology,
                                        const Schedule* schedule);

}  // namespace espalier::cli
