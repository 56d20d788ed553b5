#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/simulate.h"

namespace espalier::sim {

/// How much of the run a link was busy; parallel links are one with the sum of their rates (topology/bundles.h).
struct LinkShare {
  LinkId link;            ///< The first of them.
  std::string name;       ///< "gpu0>nvswitch0", however many links that is.
  std::size_t links = 1;  ///< How many they are.
  LinkUse use;            ///< The bytes of all; the time that one link of their rates together was busy.
  double share = 0;       ///< Time busy over the time elapsed, from 0 to 1.
};

/// The busiest links, at most `count`, busiest first and ties in id order; links that carried nothing are left out.
/// `uses` by link.
std::vector<LinkShare> busiest_links(std::span<const LinkUse> uses, Picoseconds elapsed, const Topology& topology,
                                     std::size_t count);
std::vector<LinkShare> busiest_links(const Report& report, const Topology& topology, std::size_t count);

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
