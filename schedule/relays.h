#pragma once

// Tested by: tests/unit/schedule/relays_test.cpp

#include <cstddef>
#include <string>

#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier {

// Where routes begin and end: at ranks, numbered from 0, and at the schedule's relays, numbered on from there
// (docs/schedule.md, "Relays").

/// How many ends there are: ranks and relays.
inline std::size_t end_count(const Schedule& schedule) {
  return schedule.collective.rank_count + schedule.relays.size();
}

inline bool is_relay(const Schedule& schedule, Rank end) { return end.index() >= schedule.collective.rank_count; }

/// Requires: an end of this schedule on this topology.
inline NodeId node_of_end(const Schedule& schedule, const Topology& topology, Rank end) {
  if (!is_relay(schedule, end)) return topology.node_of(end);
  return schedule.relays[end.index() - schedule.collective.rank_count];
}

/// Requires: an end of this schedule on this topology.
inline const std::string& end_name(const Schedule& schedule, const Topology& topology, Rank end) {
  return topology.node(node_of_end(schedule, topology, end)).id;
}

}  // namespace espalier
