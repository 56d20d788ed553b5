#pragma once

// Tested by: tests/unit/schedule/ecmp_test.cpp

#include <cstdint>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A schedule as a network carries it whose switches hash flows over equal paths (ECMP), where planners place each
/// route themselves.
///
/// A flow is what one rank sends another on one channel. Of its route, the part from the first switch of the network to
/// the last is drawn anew: at every switch the next link is one of those on a way of fewest links to the last switch,
/// and of these one of the fastest, by a hash of the seed, the flow and the switch. Routes from or to relays stay, and
/// so does what passes one switch only. The same seed gives the same routes on every machine.
/// Requires: a schedule whose structure is right on this topology. Cost: linear in routes times their channels, and in
/// links for each last switch.
Schedule hash_flows(const Schedule& schedule, const Topology& topology, std::uint64_t seed);

/// The same schedule with each flow that has such a choice on the way that is least loaded so far, the largest flows
/// first: what fills links least evenly in planners that take one of several equal ways. The schedule as it was, unless
/// its fullest link is less full then. Requires and cost as above.
Schedule spread_flows(Schedule schedule, const Topology& topology);

/// Whether some flow of a schedule has a choice there.
bool has_equal_paths(const Schedule& schedule, const Topology& topology);

}  // namespace espalier
