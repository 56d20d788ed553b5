#pragma once

// Tested by: tests/unit/schedule/json/schedule_json_test.cpp

#include <string>
#include <vector>

#include "schedule/json/plan_cursor.h"
#include "topology/topology.h"

namespace espalier {

/// The nodes that a plan lists by name.
struct NamedNodes {
  const std::vector<std::string>& ranks;
  const std::vector<std::string>& relays;
};

/// Where the parts of a plan that name nodes and links begin.
struct NamingParts {
  std::size_t transfers = 0;
  std::optional<std::size_t> bound;
};

/// The network that a plan without one speaks of: its ranks, its relays as switches that copy and add, and the nodes
/// and links that its routes and its bound's cut name. Rates and latencies are fillers. Nothing when the cursor has
/// failed.
std::optional<Topology> imply_topology(PlanCursor& cursor, const std::string& name, const NamedNodes& named,
                                       const NamingParts& parts);

}  // namespace espalier
