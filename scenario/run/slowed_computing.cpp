#include "scenario/run/slowed_computing.h"

#include <algorithm>

namespace espalier::scenario {
namespace {

constexpr __int128 full_rate = 1'000'000;

}  // namespace

SlowedComputing::SlowedComputing(std::size_t ranks, std::size_t tasks, std::int64_t slowed_ppm)
    : slowed_ppm_(slowed_ppm), running_(ranks), moving_(ranks, 0), ends_(tasks, -1) {}

std::int64_t SlowedComputing::end_of(const Running& running, bool is_slowed) const {
  const __int128 factor = is_slowed ? full_rate + slowed_ppm_ : full_rate;
  return running.since + static_cast<std::int64_t>((running.left * factor + full_rate - 1) / full_rate);
}

std::int64_t SlowedComputing::begin(TaskId task, Rank rank, std::int64_t time, std::int64_t work) {
  const Running& begun = running_[rank.index()].emplace_back(Running{task, work, time});
  return ends_[task.index()] = end_of(begun, moving_[rank.index()] > 0);
}

void SlowedComputing::move(Rank rank, std::int64_t time, int change, Timers& timers) {
  const bool was_slowed = moving_[rank.index()] > 0;
  moving_[rank.index()] += change;
  const bool is_slowed = moving_[rank.index()] > 0;
  if (was_slowed == is_slowed) return;
  const __int128 factor = was_slowed ? full_rate + slowed_ppm_ : full_rate;
  for (Running& running : running_[rank.index()]) {
    running.left -= static_cast<std::int64_t>((time - running.since) * full_rate / factor);
    running.left = std::max<std::int64_t>(running.left, 0);
    running.since = time;
    const std::int64_t end = end_of(running, is_slowed);
    ends_[running.task.index()] = end;
    timers.push({end, TimerKind::task_end, running.task.value()});
  }
}

bool SlowedComputing::ends(TaskId task, Rank rank, std::int64_t time) {
  if (ends_[task.index()] != time) return false;
  ends_[task.index()] = -1;
  auto& running = running_[rank.index()];
  running.erase(std::ranges::find(running, task, &Running::task));
  return true;
}

}  // namespace espalier::scenario
