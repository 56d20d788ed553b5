#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/topology.h"

namespace espalier {

/// What it would buy to lay one more cable beside an existing one.
struct MoreCables {
  std::string beside;     ///< The cable's name, the first of those that are alike.
  std::string what;       ///< "nvlink2 cable".
  std::size_t alike = 1;  ///< How many cables a symmetry makes the same.
  Bound with_one;         ///< The bound with one more cable beside this one.
  Bound with_all;         ///< The bound with one more beside each that is alike.
};

/// Recomputes the bound with each kind of cable that crosses the bound's cut doubled; of every kind of cable where the
/// bound has no cut. Those that buy most with one cable come first. At most `most` kinds, in the order of the topology.
/// Cost: two bounds per kind.
Result<std::vector<MoreCables>> value_more_cables(const Topology& topology, const Collective& collective,
                                                  const Bound& bound, std::size_t most = 16);

}  // namespace espalier
