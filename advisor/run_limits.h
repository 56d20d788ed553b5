#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planners/chooser.h"
#include "sim/simulate.h"
#include "sim/utilisation.h"

namespace espalier {

/// What the last byte of a run did with its time.
enum class PathUse : std::uint8_t { moving, queueing, sharing, latency, overhead, reducing, copying, in_backplane };

/// "moving over", "queueing for", "sharing", "the latency of", "messages on", "reducing at",
/// "in the copy engines of", "in the backplane of".
std::string_view to_string(PathUse use);

/// One use of the critical path's time on links of one class, or at nodes.
struct PathTime {
  PathUse use = PathUse::moving;
  std::string where;  ///< The links' class or rate; "ranks" and "switches" for nodes.
  Picoseconds time;
  std::string most_at;    ///< The link or node with the largest part of it.
  Picoseconds most_time;  ///< That part.
};

/// One change, and the run with it.
struct Improvement {
  std::string change;  ///< "twice the bandwidth of nvlink2 (48 links)".
  std::string kind;    ///< "bandwidth", "latency", "overhead", "reduction", "backplane", "chunk" or "algorithm".
  Picoseconds elapsed;
  Bytes chunk;
};

/// What limits a run, and what would help.
struct RunLimits {
  sim::Report report;  ///< With its critical path, and with whom it shared.
  sim::ModelKind model = sim::ModelKind::link;
  std::vector<PathTime> path;             ///< Sums to the time elapsed; most first.
  std::vector<sim::LinkShare> full;       ///< Links busy for more than 90 % of the time, busiest first.
  std::vector<Improvement> improvements;  ///< Fastest first; also those that save nothing.
};

/// Takes a run's critical path apart. In the model fair a flow's time is its messages' overhead, the latency of every
/// link of its route, what its bytes take at the full rate of the slowest of these, and what sharing cost beyond that.
/// Requires: a report of this schedule on this topology in this model that recorded it.
std::vector<PathTime> divide_critical_path(const sim::Report& report, const Schedule& schedule,
                                           const Topology& topology, sim::ModelKind model);

/// Simulates a run with its critical path, then anew with every single change that the path and the busiest link
/// suggest: twice the bandwidth or half the latency of a class or link, no per-message overhead, twice the reduction
/// rate or backplane, smaller and larger chunks, and the schedules of `others` with the chunks that suit them.
/// Nothing is estimated; the schedule stays what it was, so a planner might find more on the changed network.
/// Requires: as sim::simulate. Errors: those of the run itself; a change that cannot be simulated is left out.
/// Cost: at most 20 simulations and one per other candidate.
Result<RunLimits> find_run_limits(const Schedule& schedule, const Topology& topology, sim::Options options,
                                  std::span<const Candidate> others = {});

}  // namespace espalier
