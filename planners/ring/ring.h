#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "planners/residual.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

/// A directed cycle through all ranks and the share of the links it takes.
struct Ring {
  std::vector<Rank> order;  ///< Begins with rank 0.
  std::vector<Path> hops;   ///< hops[i] leads from order[i] to the next one; the last leads back to the first.
  std::int64_t rate = 0;    ///< Bytes per second that it takes of every link of its hops.
};

/// The set of rings with the largest total rate that a bounded search finds: edge-disjoint in the sense that together
/// they never take more of a link or backplane than it has. A ring takes whole links (its rate is that of a link it
/// fills, as an NCCL channel's is), runs in both directions where its cables are duplex, and crosses machines rail by
/// rail. Empty when no cycle through all ranks exists. docs/planners.md tells how it searches.
/// Cost: a fixed number of search steps for up to 16 ranks; about ranks x rails x links of a box beyond.
std::vector<Ring> find_rings(const Topology& topology);

/// Sum of the rings' rates.
std::int64_t total_rate(const std::vector<Ring>& rings);

/// all_reduce, reduce_scatter, all_gather, broadcast and reduce over `find_rings`: each ring carries a part of the data
/// in proportion to its rate. Between N ranks in one ring all_reduce takes 2(N-1) steps of S/N bytes.
/// Errors: unsupported for other collectives, or without a cycle through all ranks.
/// Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69(2),
/// 2009.
Result<Schedule> plan_ring(const Topology& topology, const Collective& collective);

}  // namespace espalier
