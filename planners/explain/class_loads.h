#pragma once

// Tested by: tests/unit/planners/explain_test.cpp

#include <string>
#include <vector>

#include "schedule/loads.h"

namespace espalier::planners {

/// How full a schedule makes the links of one class, as parts of the time that the bound allows.
struct ClassLoad {
  std::string link_class;  ///< The class, or "25 GB/s" where links have none.
  std::size_t links = 0;
  std::size_t used = 0;  ///< Links that carry something.
  double most = 0;       ///< Of the fullest link; 1 where it is busy for the whole bound.
  double mean = 0;       ///< Over all links of the class.
};

/// In order of first appearance in the topology. Requires: loads of this schedule on this topology, and a bound above
/// 0.
std::vector<ClassLoad> group_loads(const Schedule& schedule, const Topology& topology, const Loads& loads,
                                   const Bound& bound);

/// The part of the bound's time that a link is busy for.
double part_of_bound(const Schedule& schedule, const Topology& topology, const Loads& loads, const Bound& bound,
                     LinkId link);

}  // namespace espalier::planners
