#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include "cli/output/console.h"
#include "forecast/question.h"

namespace espalier::cli {

/// forecast::plan on all cores with a progress bar. `verbose`: every round of every linear program is told on standard
/// error.
Result<planners::Candidates> plan_shown(const Console& console, forecast::Question question, bool verbose = false);

}  // namespace espalier::cli
