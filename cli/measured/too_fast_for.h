#pragma once

#include <span>

#include "cli/output/console.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A measured time of one size.
struct MeasuredTime {
  Bytes size;
  double seconds = 0;
};

/// Warns where something took less than any schedule on the machine can: it was measured on another one. Names the
/// shipped machines of as many ranks, of the same or another name's beginning first, on which it is possible.
void warn_of_too_fast(const Console& console, const Topology& machine, const Collective& collective,
                      std::span<const MeasuredTime> times);

}  // namespace espalier::cli
