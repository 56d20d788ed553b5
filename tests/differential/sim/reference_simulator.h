#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"
#include "schedule/timeline/timeline.h"
#include "sim/simulate.h"
#include "topology/topology.h"

namespace espalier::test {

struct ReferenceRun {
  std::int64_t elapsed = 0;
  std::vector<sim::LinkUse> links;
  std::vector<Span> spans;  ///< In begin order, ties by lane, phase, transfer, chunk.
};

/// The `link` model by the letter of docs/simulator.md, one paragraph after the other, without any cleverness: looks at
/// every chunk again and again for the one that asks first. Derives what waits for what from bytes, not from slices.
/// `message`: what a chunk keeps a rank's processor busy. Cost: O(chunks^2) per step.
ReferenceRun simulate_by_definition(const Schedule& schedule, const Topology& topology, const sim::Options& options,
                                    Picoseconds message = {});

}  // namespace espalier::test
