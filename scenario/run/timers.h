#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace espalier::scenario {

/// What happens at a moment, in the order in which things of one moment are handled.
enum class TimerKind : std::uint8_t {
  task_end,    ///< A compute or wait is over, or a rank is through with its part in a call. Id: the task.
  task_ready,  ///< A late rank may begin. Id: the task.
  notice,      ///< A dead or revived link is noticed. Id: the index of the notice.
  flow,        ///< A pair of the background sends. Id: the pair.
};

struct Timer {
  std::int64_t time = 0;
  TimerKind kind = TimerKind::task_end;
  std::uint32_t id = 0;
  friend auto operator<=>(const Timer&, const Timer&) = default;
};

/// Timers, earliest first.
using Timers = std::priority_queue<Timer, std::vector<Timer>, std::greater<>>;

}  // namespace espalier::scenario
