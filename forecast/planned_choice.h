#pragma once

// Tested by: tests/unit/forecast/degrade_test.cpp

#include <optional>
#include <string>

#include "forecast/question.h"
#include "planners/chooser.h"

namespace espalier::forecast {

/// What NCCL gives under a profile.
struct NcclRun {
  std::optional<RunReport> run;  ///< Absent where it has nothing for the collective.
  std::string by;                ///< By which algorithm with which protocol: "nccl/ring/simple".
};

/// What planning a machine gave: all candidates that may have won, and the fastest of them at the first size.
struct PlannedChoice {
  planners::Candidates candidates;
  std::optional<planners::Choice> choice;            ///< None where only bounds are wanted.
  Result<NcclRun> nccl = NcclRun{std::nullopt, {}};  ///< Where it was asked for.
};

/// Plans a question and chooses at its first size. Rings of many ranks, which take longest to write down, are not
/// planned where they cannot be chosen; what is chosen is the same. `with_nccl`: under a profile what NCCL would pick
/// is planned and run as well. Errors: those of plan, of all planners, and of runs.
Result<PlannedChoice> plan_and_choose(const Question& question, bool with_nccl);

/// NCCL alone. Errors: those of plan and of runs.
Result<NcclRun> run_nccl(Question question);

}  // namespace espalier::forecast
