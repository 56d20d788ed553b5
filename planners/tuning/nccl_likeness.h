#pragma once

// Tested by: tests/unit/planners/tuning_test.cpp

#include <cstdint>
#include <string>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// How the pieces of the buffer travel in a schedule.
struct TravelShape {
  std::uint32_t hops = 0;  ///< The longest path of a slice over ranks and relays, additions and copies counted apart.
  std::uint32_t branches = 0;  ///< The most ranks to which one rank copies a slice, or from which it adds one up.
  double in_chains = 1;        ///< The part of all bytes that travels in slices that branch nowhere.
};

/// Requires: a schedule that passes `verify`. Cost: linear in the slice moves, and 12 bytes per rank and slice.
TravelShape measure_travel(const Schedule& schedule);

/// The algorithm of NCCL that is most like a schedule.
struct NcclLikeness {
  std::string algorithm;  ///< As NCCL_ALGO takes it: "Ring", "Tree", "NVLS", "CollNet", "PAT"; "-" where NCCL has none.
  std::string why;        ///< One sentence: what was compared.
};

/// Judged by structure: slices that pass from rank to rank without branching are like a ring, slices that branch like a
/// tree, relays or one hop through switches that add and copy like NVLS (one machine) or CollNet. Only what NCCL offers
/// for the collective counts, and PAT only where every machine has one rank. Source: github.com/NVIDIA/nccl,
/// src/graph/tuning.cc, which algorithm runs which collective; NCCL_ALGO in its guide.
NcclLikeness nearest_nccl(const Schedule& schedule, const Topology& topology);

}  // namespace espalier::planners
