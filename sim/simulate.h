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
  friend bool operator==(const LinkUse&, const LinkUse&) = default;
};

/// One step of the critical path: where the chunk that the end waited for was, from when to when. The steps follow each
/// other from 0 to the end without gaps.
struct CriticalStep {
  TransferId transfer;
  std::uint32_t chunk = 0;
  LinkId link;  ///< The link it passed, latency and (on the first step) per-message cost included; none for a node.
  NodeId node;  ///< The node whose backplane or reduction it passed; none for a link.
  Picoseconds begin;
  Picoseconds end;
  Picoseconds queued;  ///< The part of the time spent waiting for the link or node to serve others.
  friend bool operator==(const CriticalStep&, const CriticalStep&) = default;
};

struct Report : RunReport {
  std::vector<LinkUse> links;  ///< By link id.
  std::uint64_t events = 0;    ///< How many times a link, backplane or reduction served a chunk.
  std::vector<CriticalStep> critical_path;
};

/// Runs a schedule on the `link` model (docs/simulator.md): chunks, first come first served links, cut-through.
/// Deterministic: the same input gives the same report.
/// Requires: a schedule that passes `verify` on this topology.
/// Errors: too_large when the simulated time would not fit 2^62 ps, or when the chunks are past the limits of
/// sim/workload.h; invalid_input when the size does not fit the layout, a chunk is smaller than an element, or an id or
/// route is not of this topology.
/// Cost: O(log of the time's bits) per chunk and link expected; 40 bytes per transfer beside the schedule and its
/// dependencies, and what is recorded.
Result<Report> simulate(const Schedule& schedule, const Topology& topology, const Options& options);

}  // namespace espalier::sim
