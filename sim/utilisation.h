#pragma once

#include <cstddef>
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

}  // namespace espalier::sim
