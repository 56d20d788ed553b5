#pragma once

// Tested by: tests/unit/probe/probe_plan_test.cpp

#include <string>
#include <vector>

#include "probe/findings.h"
#include "topology/provenance.h"
#include "topology/topology.h"

namespace espalier::probe {

/// A machine with measured rates in the place of described ones, and where each value is from.
struct MeasuredMachine {
  Topology topology;
  std::vector<ProvenanceRow> provenance;  ///< Of measured values; their text has spread and described value.
};

/// Links of a class in which some hop was measured get the described rate times the median of measured over described;
/// those of suspect hops times what is left there. Latencies of the classes that make up most of a pair's latency are
/// scaled alike. Links of other classes stay as they were described.
/// Errors: those of Topology::make.
Result<MeasuredMachine> measured_topology(const Topology& topology, const Hops& hops, std::span<const PairPath> paths,
                                          const Findings& findings);

}  // namespace espalier::probe
