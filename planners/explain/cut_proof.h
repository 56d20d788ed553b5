#pragma once

// Tested by: tests/unit/planners/explain_test.cpp

#include <optional>
#include <vector>

#include "base/rational.h"
#include "schedule/bound.h"
#include "schedule/collective.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A bound's cut taken apart: what has to cross it, and over what. `demand` / `capacity` is the bound, once more.
struct CutProof {
  Direction direction = Direction::forward;  ///< forward: it has to leave the cut; reversed: to enter it.
  std::size_t ranks_inside = 0;
  Rational demand;                 ///< Bytes that have to cross per byte of S.
  std::vector<LinkId> links;       ///< Those that cross, without those behind a backplane that limits them.
  std::vector<NodeId> backplanes;  ///< Nodes inside whose backplane is less than their links that cross.
  BigInteger capacity;             ///< Bytes per second of all these together.
};

/// The bytes per byte of S that have to leave (forward) or enter (reversed) a set of nodes in every schedule.
/// Requires: a rank inside and one outside.
Rational crossing_demand(const Topology& topology, const Collective& collective, const std::vector<bool>& is_inside,
                         Direction direction);

/// Proves a bound by its cut without asking where it came from. What crosses to a rank that must not relay goes no
/// further: links to it do not count, but where it is the one rank that has to be reached. Nothing when the bound has
/// another proof (a program, or messages counted one by one).
std::optional<CutProof> prove_cut(const Topology& topology, const Collective& collective, const Bound& bound);

}  // namespace espalier::planners
