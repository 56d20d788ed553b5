#pragma once

// Tested by: tests/unit/topology/generate/generate_test.cpp

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier {

/// By node: whether a walk from `start` along links, or against them, reaches it. It passes no rank that must not
/// relay.
std::vector<bool> reached_from(const Topology& topology, NodeId start, bool forwards);

/// A rank that some other rank cannot reach, with that other rank; nothing when every rank reaches every other without
/// passing ranks that must not relay.
struct Unreachable {
  Rank from;
  Rank to;
};
std::optional<Unreachable> find_unreachable(const Topology& topology);

/// "rank a cannot reach rank b", with the ranks that must not relay and stand in the way.
std::string describe_unreachable(const Topology& topology, const Unreachable& pair);

/// Whether every rank reaches every other. Errors: infeasible, naming two that do not.
Result<void> check_reachable(const Topology& topology);

}  // namespace espalier
