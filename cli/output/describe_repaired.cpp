#include "cli/output/describe_repaired.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "forecast/entrants.h"

namespace espalier::cli {

std::string repaired_text(const planners::Candidate& candidate) {
  const planners::RepairedPlan* const repaired = forecast::repairs_of(candidate);
  if (repaired == nullptr) return {};
  return fmt::format(
      "# {} is that of the whole machine, {} of {} changed at {}; times are estimates: those of the whole machine, "
      "simulated, and what the changes add\n",
      candidate.planner, repaired->changed_trees, counted(repaired->tree_count, "tree"),
      counted(repaired->changes.size(), "edge"));
}

std::optional<nlohmann::ordered_json> repaired_json(const planners::Candidate& candidate) {
  const planners::RepairedPlan* const repaired = forecast::repairs_of(candidate);
  if (repaired == nullptr) return std::nullopt;
  return nlohmann::ordered_json{{"trees", repaired->tree_count},
                                {"changed_trees", repaired->changed_trees},
                                {"changed_edges", repaired->changes.size()},
                                {"time_per_byte", to_string(repaired->loads.time_per_byte)},
                                {"simulated", false}};
}

}  // namespace espalier::cli
