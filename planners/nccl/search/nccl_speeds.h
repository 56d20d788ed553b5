#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include <span>

#include "planners/nccl/search/nccl_box.h"

namespace espalier::planners {

/// The rates of a channel that the search tries, downwards, in GB/s: in a machine that is alone, or one of several.
std::span<const float> nccl_speeds(const NcclEra& era, bool is_one_of_several);

}  // namespace espalier::planners
