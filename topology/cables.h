#pragma once

// Tested by: tests/unit/topology/without_test.cpp

#include <string>
#include <vector>

#include "topology/topology.h"

namespace espalier {

/// A duplex cable: a link and its way back. The k-th link from a to b and the k-th from b to a, in id order, are one.
struct Cable {
  LinkId there;
  LinkId back;  ///< None for a link without a way back.
};

/// All cables of a topology, in the order of their first links. Every link is in exactly one.
std::vector<Cable> find_cables(const Topology& topology);

/// "a-b", or "a-b#k" for the k-th (from 0) of several cables between a and b; the link's name when it has no way back.
/// `a` is where the cable's first link begins.
std::string cable_name(const Topology& topology, const Cable& cable);

}  // namespace espalier
