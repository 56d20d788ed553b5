#pragma once

// Tested by: tests/unit/planners/nccl/nccl_collnet_test.cpp

#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// all_reduce over switches between machines that add and copy (SHARP). Each tree has one GPU of every machine, its
/// head, beside such a switch; the others of a machine hand to their head, and the switch adds what the heads send and
/// copies the sum back. A switch has as many trees as the machine with the fewest heads has heads there.
///
/// CollNetDirect: every GPU hands straight to the heads; CollNetChain: along a chain that ends at the head.
/// Errors: unsupported for all but all_reduce, on one machine, where no such switch is beside a GPU of every machine
/// (NICs and PCIe between them), and where neighbours in a machine have no route.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/{connect,search}.cc.
Result<Schedule> plan_collnet_direct(const Topology& topology, const Collective& collective);
Result<Schedule> plan_collnet_chain(const Topology& topology, const Collective& collective);

}  // namespace espalier::planners
