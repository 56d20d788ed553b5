#pragma once

// Tested by: tests/unit/topology/slow_test.cpp

#include <span>
#include <string>

#include "topology/topology.h"

namespace espalier {

/// The topology with some links at a part of their rates, each text being "PARTS=PART": what find_parts names
/// (without.h) and a part such as 0.25 or 25%. A node stands for all its links and for its backplane. Of several texts
/// about one link the last counts. The topology is called "NAME with PARTS at 25 %".
/// Errors: invalid_input, as find_parts; also for a part of zero or above one, or one that leaves no byte per second.
Result<Topology> slow_down(const Topology& topology, std::span<const std::string> texts);

}  // namespace espalier
