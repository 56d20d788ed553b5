#pragma once

// Tested by: tests/unit/experts/machine_rates_test.cpp

#include <cstddef>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier::experts {

/// What an exchange between experts sees of a machine. Rates are per rank and direction.
struct MachineRates {
  std::size_t ranks = 0;
  std::size_t boxes = 1;      ///< Parts whose ranks reach one another without a NIC; all of the same size.
  double link_rate = 0;       ///< Bytes per second over links within a box.
  double nic_rate = 0;        ///< Bytes per second out of the box; 0 where all ranks are in one.
  double link_latency = 0;    ///< Seconds from rank to rank within a box.
  int multiprocessors = 132;  ///< Of a GPU, which share the work of kernels that use all.

  [[nodiscard]] std::size_t ranks_per_box() const { return ranks / boxes; }
};

/// Of the first `ranks` ranks of a machine; 0: of all. Errors: invalid_input where it has fewer; unsupported where they
/// fill boxes unequally, a rank has no link within its box, or boxes have no NICs between them.
Result<MachineRates> find_rates(const Topology& topology, std::size_t ranks);

}  // namespace espalier::experts
