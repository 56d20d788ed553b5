#pragma once

#include <cstdint>

#include "base/rational.h"
#include "planners/rank_groups.h"
#include "topology/topology.h"

namespace espalier {

/// Bytes per second that no set of rings exceeds: every ring leaves and enters every set of nodes that separates ranks,
/// and passes every rank's backplane twice. Requires: two ranks or more; every rank reaches every other.
/// Cost: two maximum flows per rank.
Rational ring_limit(const Topology& topology);

/// A limit that is read off: what enters and leaves each rank, and each machine that has several.
std::int64_t port_limit(const Topology& topology, const RankGroups& groups);

}  // namespace espalier
