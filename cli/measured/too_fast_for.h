#pragma once

// Tested by: tests/options/options_test.py

#include <optional>
#include <string>
#include <vector>

#include "compare/read/measurements.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A measured time that no schedule on a machine can reach.
struct ImpossibleTime {
  std::string collective;
  Bytes size;
  double seconds = 0;
  double min_seconds = 0;  ///< What every schedule takes.
};

/// The one furthest below what the machine can do; nothing where all are possible, or no bound can be said.
std::optional<ImpossibleTime> find_impossible(const Topology& machine, const compare::Measurements& measured);

/// "all_reduce of 8 GiB took 31.37 ms, and no schedule there takes less than 33.41 ms".
std::string describe(const ImpossibleTime& time);

}  // namespace espalier::cli
