#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include <span>

#include "planners/planner.h"

namespace espalier::planners {

/// The schedules that NCCL itself would run, by its algorithms:
///
/// - "nccl/ring": the rings that NCCL's search finds, each channel as much of the data, where the context says whose
///   search; else those of the planner `ring`. All but gather, scatter, all_to_all and send_recv.
/// - "nccl/tree": all_reduce up and down double binary trees over machines, one pair per rail, a chain inside each
///   machine; on one machine a chain there and one back.
/// - "nccl/nvls": through one switch that copies and adds, a part of the data by every rank. One machine; all_reduce,
///   all_gather, reduce_scatter.
/// - "nccl/nvls_tree": all_reduce through such a switch in every machine, double binary trees between their ranks.
/// - "nccl/collnet_direct", "nccl/collnet_chain": all_reduce over switches between machines that copy and add (SHARP),
///   inside machines straight or along chains.
/// - "nccl/pat": all_gather and reduce_scatter among machines of one rank each, in as many steps as doubling takes.
/// - "nccl/pxn": the same collectives as p2p; what goes to another machine passes a GPU of its own whose NIC is on the
///   destination's rail. Where sources are not as near themselves.
/// - "nccl/p2p": every block straight to its destination: gather, scatter, all_to_all, send_recv.
///
/// Which of them NCCL picks at a size, with which protocol and chunk, is the profile's part (profile/).
/// Errors: unsupported where NCCL has no such algorithm, for the collective or on the network.
/// Source: github.com/NVIDIA/nccl (June 2026), src/graph/{search,connect,trees,tuning}.cc.
std::span<const Planner> nccl_planners();

}  // namespace espalier::planners
