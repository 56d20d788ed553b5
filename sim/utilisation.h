#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/simulate.h"

namespace espalier::sim {

/// How much of the run a link was busy.
struct LinkShare {
  LinkId link;
  LinkUse use;
  double share = 0;  ///< Time busy over the time elapsed, from 0 to 1.
};

/// The busiest links, at most `count`, busiest first and ties in id order; links that carried nothing are left out.
std::vector<LinkShare> busiest_links(const Report& report, std::size_t count);

/// What the critical path spent on one class of links, or on reductions or backplanes.
struct CriticalShare {
  std::string what;  ///< The links' class or rate; "reduction", "backplane" or "copy engine".
  std::size_t steps = 0;
  Picoseconds time;    ///< All of it.
  Picoseconds queued;  ///< The part spent waiting for others to pass.
};

/// The critical path by what it spent its time on, most first. Requires: a report that recorded it.
std::vector<CriticalShare> summarize_critical_path(const Report& report, const Topology& topology);

}  // namespace espalier::sim
