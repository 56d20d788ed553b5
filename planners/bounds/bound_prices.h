#pragma once

// Tested by: tests/unit/planners/bounds/all_reduce_bound_test.cpp

#include <span>
#include <string>
#include <vector>

#include "base/rational.h"
#include "planners/lp/orbit_graph.h"
#include "topology/topology.h"

namespace espalier::planners {

/// What a link or backplane has to do with a limit that a linear program proves: where it had 1 % more bandwidth, the
/// limit would be `share` times 1 % higher. All together are 1.
struct BoundPrice {
  LinkId link;  ///< None for a backplane.
  NodeId node;  ///< Whose backplane.
  double share = 0;
};

/// A program's exact prices by link and backplane, those of price zero left out: each with its part of what all
/// capacity is worth. `prices` by orbit of resources.
std::vector<BoundPrice> price_shares(const Topology& topology, const OrbitGraph& orbits,
                                     const std::vector<BigInteger>& prices);

/// All prices of one class of links, or of backplanes.
struct BindingClass {
  std::string name;  ///< The class, or the rate where there is none; "backplanes".
  std::vector<LinkId> links;
  std::vector<NodeId> nodes;
  double share = 0;
};

/// What prices say that binds, most first.
std::vector<BindingClass> binding_classes(std::span<const BoundPrice> prices, const Topology& topology);

/// "nic (8 links) 62 %, nvlink (48 links) 38 %", with the first few of many.
std::string binding_text(std::span<const BoundPrice> prices, const Topology& topology);

}  // namespace espalier::planners
