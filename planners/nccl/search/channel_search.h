#pragma once

// Tested by: tests/unit/planners/nccl/search/nccl_search_test.cpp

#include "planners/nccl/search/nccl_search.h"

namespace espalier::planners {

inline constexpr int max_ring_channels = 32;
inline constexpr int no_steps_needed = -1;  ///< Steps left where nothing better can be.

/// A graph that is being made, and what it may become.
struct Attempt : NcclGraph {
  int min_channels = 1;
  int max_channels = max_ring_channels;
};

/// One run of the search: all channels at one rate, within limits on how far ways may lead. `best` becomes what is
/// better than it. Takes from `steps`; `no_steps_needed` where all channels that there may be were found.
void search_channels(NcclBox& box, Attempt& made, Attempt& best, int& steps);

}  // namespace espalier::planners
