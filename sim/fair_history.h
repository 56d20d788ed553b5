#pragma once

#include <vector>

#include "schedule/chunking.h"
#include "schedule/timeline.h"
#include "sim/history.h"
#include "sim/network.h"
#include "sim/program.h"
#include "sim/simulate.h"

namespace espalier::sim {

/// The spans of docs/fair.md, "Timeline", in begin order. Requires: a history that FairModel recorded.
std::vector<Span> make_fair_spans(const Program& program, const Chunking& chunking, const Network& network,
                                  const History& history);

/// Walks back from the chunk that arrived last to the start, as docs/fair.md says; the steps follow each other without
/// gaps. Requires: a history that FairModel recorded.
std::vector<CriticalStep> find_fair_critical_path(const Program& program, const Chunking& chunking,
                                                  const Network& network, const History& history,
                                                  std::int32_t payload_ppm);

}  // namespace espalier::sim
