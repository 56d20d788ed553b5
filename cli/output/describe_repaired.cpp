#include "cli/output/describe_repaired.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "planners/symmetric/repaired_plan.h"

namespace espalier::cli {

std::string repaired_text(const planners::Candidate& candidate) {
  const planners::RepairedPlan& repaired = *candidate.repaired;
  return fmt::format(
      "# {} is that of the whole machine, {} of {} changed at {}; times are of loads and latencies, not simulated\n",
      candidate.planner, repaired.changed_trees, counted(repaired.tree_count, "tree"),
      counted(repaired.changes.size(), "edge"));
}

nlohmann::ordered_json repaired_json(const planners::Candidate& candidate) {
  const planners::RepairedPlan& repaired = *candidate.repaired;
  return {{"trees", repaired.tree_count},
          {"changed_trees", repaired.changed_trees},
          {"changed_edges", repaired.changes.size()},
          {"time_per_byte", to_string(repaired.loads.time_per_byte)},
          {"simulated", false}};
}

}  // namespace espalier::cli
