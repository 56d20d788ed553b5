#pragma once

// Tested by: tests/unit/planners/damage/failures_test.cpp

#include <string>
#include <vector>

#include "topology/cables.h"
#include "topology/topology.h"
#include "topology/without.h"

namespace espalier::planners {

/// "nvlink2 cable", "25 GB/s link": the class or rate, and whether there is a link back.
std::string cable_kind_text(const Topology& topology, const Cable& cable);

/// One thing that may fail.
struct Failure {
  std::string name;                ///< As find_parts reads it: "gpu0-gpu3#1", "nic2".
  std::string what;                ///< "nvlink2 cable", "nic", "switch", "gpu (rank)".
  Parts parts;                     ///< What is gone.
  std::vector<std::string> alike;  ///< The names of all that are the same by a symmetry of the network, with this one.
};

struct FailureOptions {
  bool ranks = false;  ///< Also ranks, not only cables and nodes that forward.
  Rank root;           ///< A rank that symmetries have to leave where it is; never among the failures.
  bool each = false;   ///< None is the same as another: what the network carries is not symmetric.
};

/// Every cable (or link without one back) and every node that forwards, of those that are the same the first one; in
/// the order of the topology, cables first. Cost: find_alike.
std::vector<Failure> single_failures(const Topology& topology, const FailureOptions& options = {});

}  // namespace espalier::planners
