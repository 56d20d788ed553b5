#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/core/network.h"
#include "sim/core/waits.h"

namespace espalier::sim {

class History;

/// One step of a critical path: where the chunk that the end waited for was, from when to when. The steps follow each
/// other without gaps.
struct CriticalStep {
  TransferId transfer;
  std::uint32_t chunk = 0;
  LinkId link;  ///< The link it passed, latency and (on the first step) per-message cost included; none for a node.
  NodeId node;  ///< The node whose backplane, reduction or copy engine it passed; none for a link.
  bool reduces = false;  ///< It was the node's reduction.
  bool copies = false;   ///< It was one of the node's copy engines.
  bool handles = false;  ///< It was the rank's processor.
  Picoseconds begin;
  Picoseconds end;
  /// The part of the time spent waiting for the link or node to serve others; in the model fair what sharing cost.
  Picoseconds queued;
  Picoseconds overhead;  ///< The part that per-message costs took, on the first step of a chunk's way.
  Picoseconds latency;   ///< The part that latency took; in the model fair of all links of the route.
  /// The part that a service took longer than the topology says: for jitter, or a link below its rate. In the model
  /// fair it is counted as queued.
  Picoseconds slowed;
  friend bool operator==(const CriticalStep&, const CriticalStep&) = default;
};

/// What time on a critical path went into.
enum class PathUse : std::uint8_t {
  moving,
  queueing,  ///< Others had the link or node.
  sharing,   ///< In the model fair: others flowed beside.
  slowed,    ///< Jitter, or a link below its rate.
  latency,
  overhead,  ///< Per-message costs.
  reducing,
  copying,  ///< In a copy engine.
  in_backplane,
  launch,  ///< Before the ranks took part.
};

/// "moving over", "queueing for", "sharing", "slowed on", "the latency of", "messages on", "reducing at",
/// "in the copy engines of", "in the backplane of", "the launch at".
std::string_view to_string(PathUse use);

inline constexpr std::uint32_t no_probe = std::numeric_limits<std::uint32_t>::max();

/// A piece of a critical path: one use of time in one place.
struct PathPart {
  PathUse use = PathUse::moving;
  LinkId link;  ///< None for a node.
  NodeId node;  ///< None for a link.
  Picoseconds time;
  std::uint32_t probe = no_probe;  ///< Of a wait: its index among the path's.
};

/// What an end waited for, from when a rank took part.
struct CriticalPath {
  std::vector<CriticalStep> steps;
  std::vector<PathPart> parts;     ///< The steps in pieces; their times add up to end - begin.
  std::vector<Probe> probes;       ///< The waits among them, for Model::probe.
  std::uint32_t window_waits = 0;  ///< How often it was a chunk of a lower round that had to leave the sender first.
  Rank root;                       ///< The rank whose taking part it began with; none when nobody had to.
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Walks back from the chunk that arrived last (of several the first in program order).
CriticalPath find_critical_path(const History& history);

/// Walks back from the moment at which a rank was through with the run: what it sends had left, and what it is to have
/// was there. Requires: a rank that was.
CriticalPath find_critical_path(const History& history, Rank rank);

/// By rank, `CriticalPath::root` of its end; its own where nothing came after its taking part, or it was not through.
/// Cost: O(chunks) for each rank at most.
std::vector<Rank> find_roots(const History& history);

/// Replaces what waits were taken for by what was found out about them: in the model fair, `sharing` then stands where
/// flows met, and what no other flow explains is `slowed` where anything can be (`is_disturbed`). Requires: `blames` of
/// this path's probes.
void settle_waits(CriticalPath& path, std::span<const Blame> blames, const Network& network, bool is_disturbed);

}  // namespace espalier::sim
