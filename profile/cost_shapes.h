#pragma once

// Tested by: tests/unit/forecast/profiled_runs_test.cpp

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planners/chooser.h"
#include "profile/profile.h"
#include "schedule/collective.h"
#include "sim/core/endpoints.h"

namespace espalier::profile {

/// Whose costs a schedule may have: those of NCCL's algorithm of that name; of the planners, what switches add and copy
/// has those of NVLS, rings those of rings and all others those of trees. What ranks send to one another, NCCL sends
/// and receives too, straight or by way of another GPU (PXN): its costs are as good.
std::vector<Shape> shapes_of(const planners::Candidate& candidate, std::size_t machines);

/// Into how many parts NCCL's algorithm divides what a channel carries.
std::uint64_t shards_of(Shape shape, const Collective& collective, std::size_t machines);

/// How many chunks of a tree are to be in flight for each that its way names. With Simple as many as it is deep, a
/// chain inside machines and a binary tree over them; with LL128 as many as the tuner counts steps, shared by a
/// machine's ranks. Source: github.com/NVIDIA/nccl (June 2026), src/enqueue.cc, src/graph/connect.cc (depth).
double depth_of(Shape shape, sim::Protocol protocol, std::size_t ranks, std::size_t machines);

}  // namespace espalier::profile
