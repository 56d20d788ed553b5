#pragma once

// Tested by: tests/unit/topology/slow_test.cpp

#include <span>
#include <string>

#include "topology/topology.h"

namespace espalier {

/// The topology with some links at a part of their rates, each text being "PARTS=PART": what find_parts names
/// (without.h) and a part such as 0.25 or 25%. A node stands for all its links and for its backplane. Of several texts
/// about one link the last counts. The topology is called "NAME with PARTS at 25 %".
///
/// What software reads of a slow part is what the part says of itself (Link::reported). A cable of several NVLinks has
/// lost some of them, and those that are left are counted; all other links say what they said before: a worn cable,
/// a slot with half of its lanes and a full queue tell no one.
/// Errors: invalid_input, as find_parts; also for a part of zero or above one, or one that leaves no byte per second.
Result<Topology> slow_down(const Topology& topology, std::span<const std::string> texts);

/// All that software which reads links sees of a topology, as text: what it plans by that is the same where this is.
std::string seen_text(const Topology& topology);
/// The topology as its links are reported; its ids are the same.
Topology as_reported(const Topology& topology);
/// Whether that differs.
bool has_reported(const Topology& topology);

}  // namespace espalier
