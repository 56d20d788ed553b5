#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "planners/chooser.h"

namespace espalier::test {

/// Candidates that take what a function says.
class TimesOf : public planners::LinkTimes {
 public:
  using Run = std::function<Result<std::optional<RunReport>>(const Schedule&, Bytes size, const Pacing& pacing,
                                                             Picoseconds deadline)>;

  TimesOf(const planners::Candidates& candidates, Run run) : LinkTimes(candidates), run_(std::move(run)) {}

  Result<std::optional<RunReport>> evaluate(const planners::Candidate& candidate, Bytes size, const Pacing& pacing,
                                            Picoseconds deadline) override {
    return run_(candidate.schedule, size, pacing, deadline);
  }

 private:
  Run run_;
};

inline Result<planners::Choice> choose(const planners::Candidates& candidates, Bytes size, TimesOf::Run run) {
  TimesOf times(candidates, std::move(run));
  return planners::choose(candidates, size, times);
}

}  // namespace espalier::test
