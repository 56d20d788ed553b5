#pragma once

// Tested by: tests/unit/scenario/run/run_job_test.cpp

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scenario/report/report.h"

namespace espalier::scenario {

/// Keeps the books of what each rank does at each moment. Times of one rank never go back. Exposed time is also booked
/// to the call that began to move first of those that move at the rank then.
class RankClock {
 public:
  RankClock(std::size_t ranks, std::size_t calls) : states_(ranks), times_(ranks), exposed_(calls) {}

  void compute(Rank rank, std::int64_t time, int change) { states_[advance(rank, time)].computing += change; }
  void waiting(Rank rank, std::int64_t time, int change) { states_[advance(rank, time)].waiting += change; }
  void begin_moving(Rank rank, std::int64_t time, CallId call) { states_[advance(rank, time)].moving.push_back(call); }
  void end_moving(Rank rank, std::int64_t time, CallId call) {
    std::vector<CallId>& moving = states_[advance(rank, time)].moving;
    moving.erase(std::ranges::find(moving, call));
  }

  /// The books up to `end`.
  [[nodiscard]] std::vector<RankTime> finish(std::int64_t end) {
    for (std::size_t i = 0; i < states_.size(); ++i) advance(Rank(i), end);
    return times_;
  }
  /// By call: the exposed time of all ranks that was booked to it. After `finish`.
  [[nodiscard]] const std::vector<std::int64_t>& exposed_of_calls() const { return exposed_; }

 private:
  struct State {
    std::int64_t since = 0;
    std::int32_t computing = 0;  ///< Tasks of each sort that run.
    std::int32_t waiting = 0;
    std::vector<CallId> moving;  ///< In the order in which they began.
  };

  std::size_t advance(Rank rank, std::int64_t time) {
    State& state = states_[rank.index()];
    RankTime& times = times_[rank.index()];
    const std::int64_t passed = time - state.since;
    if (state.computing > 0) {
      times.compute += passed;
    } else if (!state.moving.empty()) {
      times.exposed += passed;
      exposed_[state.moving.front().index()] += passed;
    } else if (state.waiting > 0) {
      times.waiting += passed;
    } else {
      times.idle += passed;
    }
    state.since = time;
    return rank.index();
  }

  std::vector<State> states_;
  std::vector<RankTime> times_;
  std::vector<std::int64_t> exposed_;
};

}  // namespace espalier::scenario
