#pragma once

// Tested by: tests/unit/planners/explain_test.cpp

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "planners/bounds/bound_prices.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier::planners {

/// What it would buy to lay one more cable beside each of some existing ones.
struct MoreCables {
  std::string beside;      ///< The first of the cables: "gpu0-gpu1".
  std::string what;        ///< "nvlink2 cable".
  std::size_t cables = 1;  ///< How many get one more: one, all that a symmetry makes the same, or the whole class.
  Bound bound;             ///< Of the network with them.
};

/// Recomputes the bound with cables of every kind that crosses the bound's cut doubled, and of every kind where the
/// bound has no cut: one, all that are alike, all of the class between such ends. Those with the largest gain come
/// first, of equals the fewest cables. Only the first `most` kinds in the order of the topology. `prices` are those
/// that prove the bound, if a program does (compute_priced_bound): more of what has no price leaves the proof as it is,
/// so the bound too. Cost: at most three bounds per kind that has a price, so many at once as there are threads.
Result<std::vector<MoreCables>> value_more_cables(const Topology& topology, const Collective& collective,
                                                  const Bound& bound, std::span<const BoundPrice> prices,
                                                  unsigned threads = 1, std::size_t most = 16);

}  // namespace espalier::planners
