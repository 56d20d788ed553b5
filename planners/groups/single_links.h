#pragma once

// Tested by: tests/property/planners/groups_test.cpp

#include <vector>

#include "topology/topology.h"

namespace espalier::planners {

/// A network without parallel links, all but the first of them passing a switch of their own, whose switches only
/// forward.
struct SingleLinks {
  Topology topology;              ///< The first nodes and links are those of the original, by id.
  std::vector<LinkId> originals;  ///< By link: the link of the original that it is, or none for a switch's second half.
};

SingleLinks with_single_links(const Topology& topology);

/// A route over the original's links.
std::vector<LinkId> original_route(const SingleLinks& single, const std::vector<LinkId>& route);

}  // namespace espalier::planners
