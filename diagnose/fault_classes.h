#pragma once

// Tested by: tests/unit/diagnose/fault_classes_test.cpp

#include <span>
#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier::diagnose {

/// Parts of a machine that none of some tests tells apart: a symmetry of the machine and of each test's ranks makes
/// them the same.
struct FaultClass {
  std::vector<std::string> parts;  ///< As find_parts names them, in the order of the topology.
  std::string what;                ///< "nic", "nvlink4 cable", "gpu", "host", "rail", "all nvlink4 links", "setting".
  bool may_be_gone = true;         ///< Whether a machine without one of them still runs the collective on all ranks.
  bool is_setting = false;         ///< One that the software has (setting.h), and no part.
  double likelier = 1;             ///< How many times likelier at fault than another part of its kind, by counters,
  std::string counters = {};       ///< which say this.
};

/// Every cable, node, host and rail (the NICs of one number of all hosts) and every class of links. `tested` are the
/// machine with the ranks of each test, with the same nodes and links. Errors: none for topologies of one machine.
/// Cost: find_alike for each test.
std::vector<FaultClass> find_fault_classes(std::span<const Topology> tested);

}  // namespace espalier::diagnose
