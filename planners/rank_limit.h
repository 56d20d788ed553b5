#pragma once

// Tested by: tests/unit/planners/chooser_test.cpp

#include "base/result.h"
#include "schedule/collective.h"

namespace espalier::planners {

/// Errors: too_large for a collective of more ranks than a schedule that is stored may have (max_ranks).
Result<void> check_rank_limit(const Collective& collective);

}  // namespace espalier::planners
