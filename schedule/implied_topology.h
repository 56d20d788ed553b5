#pragma once

#include <string>
#include <vector>

#include "schedule/plan_cursor.h"
#include "topology/topology.h"

namespace espalier {

/// Where the parts of a plan that name nodes and links begin.
struct NamingParts {
  std::size_t transfers = 0;
  std::optional<std::size_t> bound;
};

/// The network that a plan without one speaks of: its ranks, and the nodes and links that its routes and its bound's
/// cut name. Rates and latencies are fillers. Nothing when the cursor has failed.
std::optional<Topology> imply_topology(PlanCursor& cursor, const std::string& name,
                                       const std::vector<std::string>& ranks, const NamingParts& parts);

}  // namespace espalier
