#include "sim/conditions.h"

#include <string>

#include "sim/limits.h"

namespace espalier::sim {
Result<void> check_conditions(const Conditions& conditions, const Topology& topology) {
  for (const RateChange& change : conditions.changes) {
    if (change.link.index() >= topology.link_count()) {
      return fail(ErrorCode::invalid_input,
                  "a rate changes on link " + std::to_string(change.link.value()) + ", but " + topology.name() +
                      " has only " + std::to_string(topology.link_count()),
                  "name a link of the topology");
    }
    const std::string name = topology.link_name(change.link);
    if (change.at.count < 0) {
      return fail(ErrorCode::invalid_input, "the rate of " + name + " changes before the start",
                  "use a time from 0 on");
    }
    if (change.rate_ppm < 0 || change.rate_ppm > whole_ppm) {
      return fail(ErrorCode::invalid_input, "the rate of " + name + " changes to a part that is not in 0 to 100 %",
                  "give the part of the link's bandwidth that is left");
    }
  }
  if (conditions.jitter_ppm < 0 || conditions.jitter_ppm > whole_ppm) {
    return fail(ErrorCode::invalid_input, "jitter is not in 0 to 100 %", "give the most that a hop takes longer");
  }
  return {};
}

}  // namespace espalier::sim
