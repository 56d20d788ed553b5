#pragma once

// Tested by: tests/unit/cli/measured/counted_parts_test.cpp

#include <span>
#include <string>
#include <vector>

#include "cli/jobs/stop.h"
#include "compare/read/port_counters.h"
#include "diagnose/fault_classes.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A part that counters speak against.
struct CountedPart {
  std::string part;     ///< As find_parts names it.
  std::string says;     ///< "link 0: 891 CRC Errors".
  double likelier = 1;  ///< How many times likelier than its like it is at fault, before anything is measured.

  friend bool operator==(const CountedPart&, const CountedPart&) = default;
};

/// What counters speak against.
struct CountedParts {
  std::vector<CountedPart> parts;
  std::vector<std::string> unknown;  ///< Devices that the machine does not have: "GPU 99", "leaf-3".
};

/// The parts of ports in trouble. nvidia-smi's GPUs are those of the host `at`, in the machine's order, and a link is
/// any of the GPU's fabric cables; a device with a name is the node of that name, or of "HOST mlx5_N" the host's NIC
/// N, with its network cable; a port without a name is `at`.
/// Errors: usage where `at` is needed and does not say a host or part.
OrStop<CountedParts> find_counted_parts(const Topology& machine, std::span<const compare::PortTrouble> troubles,
                                        const std::string& at, const std::string& file);

/// The classes with each such part as one of its own, as much likelier.
void set_apart(std::vector<diagnose::FaultClass>& classes, std::span<const CountedPart> counted);

}  // namespace espalier::cli
