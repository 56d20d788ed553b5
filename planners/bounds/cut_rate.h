#pragma once

// Tested by: tests/unit/planners/bounds/like_sinks_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// What a cut demands: `parts` parts have to cross it on arcs of capacity `capacity` in all, so a part's size over the
/// time is at most capacity / parts. `inside` says which vertices are on the side that the parts leave.
struct CutRate {
  __int128 parts = 0;
  __int128 capacity = 1;
  std::vector<bool> inside;
  /// Of a gather: whether the cut holds backplanes of ranks that pass on. Such a rank has its own part in its backplane
  /// once and what it passes on twice, so it takes in at most half of what the backplane has beside its own part;
  /// `parts` and `capacity` are then twice what crosses on other arcs, with each such rank's part and backplane.
  bool has_relays = false;
};

// All three take a network on which every rank reaches every other (find_unreachable), with two ranks or more, and
// answer exactly, with a cut that proves the answer. A rank that must not relay is inside a cut by the vertex at which
// what it brings begins; what it received may end there, on either side.

/// The largest (parts of the ranks in X) / capacity leaving X over all vertex sets X that leave a rank out: the time
/// that an all-gather of parts of one unit takes at least (and at most: packing). `parts` says how many each rank has,
/// one where it is empty.
///
/// Newton's method: start from one cut's ratio; for every rank as the sink, send that ratio from a super source through
/// every rank; a minimum cut below the total has a larger ratio. Few rounds, since each new cut has fewer parts or more
/// capacity. The flow into one rank is led on to the next instead of starting again. Cost: one maximum flow per round,
/// and per rank a search of the network at worst, a step between neighbours at best.
/// Source: W. Dinkelbach, "On nonlinear fractional programming", Management Science 13, 1967; for the cut formula,
/// J. Edmonds, "Edge-disjoint branchings", 1973.
CutRate all_gather_cut(const FlowNetwork& network, std::span<const std::int64_t> parts = {});

/// As `all_gather_cut`, over the sets that leave the root out: every other rank has its parts for the root.
/// Requires: some other rank has a part.
CutRate gather_cut(const FlowNetwork& network, Rank root, std::span<const std::int64_t> parts = {});

/// The flow at the rate of a gather's cut, in whole numbers.
struct GatherFlow {
  std::vector<__int128> capacities;  ///< By arc.
  __int128 part = 0;                 ///< What a rank sends for each of its parts.
};
GatherFlow gather_flow(const FlowNetwork& network, Rank root, std::span<const std::int64_t> parts, const CutRate& rate);

/// The smallest capacity leaving a set that holds the root and leaves a rank out; `parts` is 1.
/// Cost: as `all_gather_cut`.
CutRate broadcast_cut(const FlowNetwork& network, Rank root);

}  // namespace espalier::planners
