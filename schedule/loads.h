#pragma once

// Tested by: tests/unit/schedule/loads_test.cpp

#include <cstdint>
#include <vector>

#include "base/rational.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A sum of units over transfers: with up to 2^62 units and 2^31 transfers it may pass 64 bits.
using UnitSum = __int128;

/// How much of the buffer each link carries and what that costs at least, exactly.
struct Loads {
  std::vector<UnitSum> link_units;  ///< Units per link, by link id.
  std::vector<UnitSum> node_units;  ///< Units into, out of or through each node with a backplane; 0 for others.
  Rational time_per_byte;           ///< Seconds per byte of S at the fullest link or backplane: no execution is faster.
  std::vector<LinkId> bottleneck_links;  ///< All links that are that full, in id order.
  std::vector<NodeId> bottleneck_nodes;  ///< All backplanes that are that full.
};

/// Requires: a schedule whose structure is right (rules S1-S3).
/// Cost: linear in transfers, links of routes and the topology.
Loads compute_loads(const Schedule& schedule, const Topology& topology);

/// The part of a link's time that its load takes when the schedule runs in `time_per_byte` seconds per byte: 1 at the
/// bottleneck of `compute_loads`.
Rational link_share(const Schedule& schedule, const Topology& topology, const Loads& loads, LinkId link);

}  // namespace espalier
