#pragma once

#include <functional>

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// What `plan` makes of the network with one link for each bundle of parallel ones (topology/bundles.h), spread over
/// their strands: how every planner's schedule comes to use them. Errors: those of `plan`.
Result<Schedule> plan_with_strands(const Topology& topology,
                                   const std::function<Result<Schedule>(const Topology&)>& plan);

}  // namespace espalier::planners
