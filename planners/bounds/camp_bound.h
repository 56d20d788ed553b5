#pragma once

#include <optional>

#include "schedule/bound.h"
#include "topology/topology.h"

namespace espalier {

/// Whether any switch copies or adds.
bool computes_in_network(const Topology& topology);

/// What all_reduce takes at least where switches copy or add, by counting messages between *camps*: ranks that switches
/// which copy or add join, and those switches. In C camps, each as good as one rank, at least 2(C-1) messages of S
/// bytes leave one camp for another (docs/bounds.md). Nothing where there is one camp, or where such a switch is in a
/// camp without ranks. Requires: ranks that reach each other. Cost: two maximum flows per camp.
std::optional<Bound> camp_message_bound(const Topology& topology);

}  // namespace espalier
