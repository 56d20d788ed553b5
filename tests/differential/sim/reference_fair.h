#pragma once

#include "tests/differential/sim/reference_simulator.h"

namespace espalier::test {

/// The `fair` model by the letter of docs/fair.md, without any cleverness: at every moment looks at every chunk again,
/// and shares everything anew from the start. `message`: what a chunk costs the processors of the ranks at both ends.
/// Leaves `links` empty.
/// Cost: O(chunks^2) per moment.
ReferenceRun simulate_fair_by_definition(const Schedule& schedule, const Topology& topology,
                                         const sim::Options& options, Picoseconds message = {});

}  // namespace espalier::test
