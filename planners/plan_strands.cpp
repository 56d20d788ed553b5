#include "planners/plan_strands.h"

#include "schedule/trees/strands.h"
#include "topology/bundles.h"

namespace espalier::planners {

Result<Schedule> plan_with_strands(const Topology& topology,
                                   const std::function<Result<Schedule>(const Topology&)>& plan) {
  const Bundles bundles(topology);
  if (!bundles.any()) return plan(topology);
  auto schedule = plan(bundled(topology, bundles));
  if (!schedule) return schedule;
  return deal_strands(*schedule, topology, bundles);
}

}  // namespace espalier::planners
