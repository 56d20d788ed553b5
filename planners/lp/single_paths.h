#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <optional>
#include <vector>

#include "base/rational.h"
#include "planners/lp/few_columns.h"
#include "planners/lp/flow_oracle.h"
#include "planners/lp/orbit_graph.h"

namespace espalier::planners {

/// Columns of an all_to_all, one for each demand, that take every block whole along one path (an unsplittable flow): a
/// solution with as few slices as there are blocks. Blocks are placed one after the other where what they pass is least
/// full, and all anew while something is overfull at the throughput `limit`; the best columns that were met, with what
/// they reach: the limit, or less where blocks would have to be split. Nothing where that would take long. Requires: a
/// graph that is not mirrored; demands of an all_to_all; a limit that is positive. Cost: demands x ranks x edges, a few
/// times. Source: J. Aspnes et al., "On-line routing of virtual circuits with applications to load balancing and
/// machine scheduling", J. ACM 44 (1997), section 3 (exponential prices).
std::optional<RoundedPacking> find_single_paths(const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
                                                const Rational& limit);

}  // namespace espalier::planners
