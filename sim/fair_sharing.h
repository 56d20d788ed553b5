#pragma once

#include <vector>

#include "schedule/chunking.h"
#include "sim/conditions.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/program.h"
#include "sim/simulate.h"

namespace espalier::sim {

/// With whom the flows of a critical path shared (docs/fair.md, "Critical path"): works the shares of all flows out
/// anew, from when each began and ended, and divides what every step was queued among the flows that were on its
/// bottleneck meanwhile, in proportion to what they carried over it. Requires: a history that FairModel recorded under
/// these conditions, and its critical path.
/// Cost: that of the rates, and O(flows on the way) for every event while a flow of the path is held back.
std::vector<SharedTime> find_shared_times(const Program& program, const Chunking& chunking, const Network& network,
                                          const Conditions& conditions, const History& history,
                                          const std::vector<CriticalStep>& path);

}  // namespace espalier::sim
