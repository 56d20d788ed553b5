#pragma once

#include <cstdint>
#include <vector>

#include "scenario/report/report.h"

namespace espalier::scenario {

/// Keeps the books of what each rank does at each moment. Times of one rank never go back.
class RankClock {
 public:
  explicit RankClock(std::size_t ranks) : states_(ranks), times_(ranks) {}

  void compute(Rank rank, std::int64_t time, int change) { states_[advance(rank, time)].computing += change; }
  void moving(Rank rank, std::int64_t time, int change) { states_[advance(rank, time)].moving += change; }
  void waiting(Rank rank, std::int64_t time, int change) { states_[advance(rank, time)].waiting += change; }

  /// The books up to `end`.
  [[nodiscard]] std::vector<RankTime> finish(std::int64_t end) {
    for (std::size_t i = 0; i < states_.size(); ++i) advance(Rank(i), end);
    return times_;
  }

 private:
  struct State {
    std::int64_t since = 0;
    std::int32_t computing = 0;  ///< Tasks of each sort that run.
    std::int32_t moving = 0;
    std::int32_t waiting = 0;
  };

  std::size_t advance(Rank rank, std::int64_t time) {
    State& state = states_[rank.index()];
    RankTime& times = times_[rank.index()];
    const std::int64_t passed = time - state.since;
    if (state.computing > 0) {
      times.compute += passed;
    } else if (state.moving > 0) {
      times.exposed += passed;
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
};

}  // namespace espalier::scenario
