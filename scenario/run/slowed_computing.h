#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <cstdint>
#include <vector>

#include "base/id.h"
#include "scenario/run/timers.h"
#include "scenario/workload/job.h"

namespace espalier::scenario {

/// Tasks that compute, slower while their rank moves data beside: kernels of calls take multiprocessors and memory's
/// rate. The end of a task is known anew whenever that changes; timers set before are void.
class SlowedComputing {
 public:
  /// `slowed_ppm`: so much longer computing takes then, in millionths.
  SlowedComputing(std::size_t ranks, std::size_t tasks, std::int64_t slowed_ppm);

  /// A task begins that takes `work` where nothing moves. Its end, as far as is known now.
  std::int64_t begin(TaskId task, Rank rank, std::int64_t time, std::int64_t work);
  /// So many more calls move data at a rank; tasks whose end this changes get new timers.
  void move(Rank rank, std::int64_t time, int change, Timers& timers);
  /// Whether the task ends at this moment; false where the timer is void. It is over then.
  bool ends(TaskId task, Rank rank, std::int64_t time);

 private:
  struct Running {
    TaskId task;
    std::int64_t left = 0;  ///< Of its work, at `since`.
    std::int64_t since = 0;
  };

  [[nodiscard]] std::int64_t end_of(const Running& running, bool is_slowed) const;

  std::int64_t slowed_ppm_;
  std::vector<std::vector<Running>> running_;  // by rank
  std::vector<std::int32_t> moving_;           // by rank
  std::vector<std::int64_t> ends_;             // by task; -1: it is not under way
};

}  // namespace espalier::scenario
