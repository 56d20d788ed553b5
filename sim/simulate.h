#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "schedule/run_report.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::sim {

struct Options {
  Bytes size;                     ///< Message size S.
  Bytes chunk;                    ///< Largest chunk; at least one element.
  std::int64_t element_size = 4;  ///< Bytes per element.
  bool record_timeline = false;
  bool record_critical_path = false;
};

/// What one link did: bytes carried and time busy.
struct LinkUse {
  std::int64_t bytes = 0;
  Picoseconds busy;
};

/// One step of the critical path, in time order: the chunk that something else waited for, and why it was late.
struct CriticalStep {
  TransferId transfer;
  std::uint32_t chunk = 0;
  LinkId link;  ///< Where the time went; none for a reduction at the destination.
  Picoseconds begin;
  Picoseconds end;
  Picoseconds queued;  ///< The part of the time spent waiting for the link.
};

struct Report : RunReport {
  std::vector<LinkUse> links;  ///< By link id.
  std::uint64_t events = 0;
  std::vector<CriticalStep> critical_path;
};

/// Runs a schedule on the `link` model (docs/simulator.md): chunks, first come first served links, cut-through.
/// Deterministic: the same input gives the same report.
/// Requires: a schedule that passes `verify` on this topology.
/// Errors: too_large when the simulated time would not fit 2^62 ps, or when the chunks are past the written limit.
Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options);

}  // namespace espalier::sim
