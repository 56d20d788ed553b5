#pragma once

// Tested by: tests/unit/scenario/read/read_scenario_test.cpp

#include <vector>

namespace espalier::scenario {

/// When a rank was busy, in microseconds, and whether only with sending data.
struct BusyTime {
  double begin = 0;
  double end = 0;
  bool communicates = false;
};

/// What a trace says of its own run: from its first to its last event, and for how long of that it communicated and
/// computed nothing.
struct RecordedTime {
  double elapsed_us = 0;
  double exposed_us = 0;
};

RecordedTime time_recorded(const std::vector<BusyTime>& times);

}  // namespace espalier::scenario
