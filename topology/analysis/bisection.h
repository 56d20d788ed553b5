#pragma once

// Tested by: tests/unit/topology/analysis/bisection_test.cpp

#include <optional>
#include <vector>

#include "base/units.h"
#include "topology/topology.h"

namespace espalier {

/// What one half of the ranks can send to the other half, for the halves that are worst off.
struct Bisection {
  Bandwidth bandwidth;             ///< Over all links that lead across, backplanes counted; at most 2^63 - 1.
  std::vector<Rank> senders;       ///< The sending half, in rank order; with an odd count either half may be larger.
  std::vector<LinkId> cut;         ///< The links across: nodes that only forward stand on the side where that is least.
  std::vector<NodeId> backplanes;  ///< Nodes whose backplane is a part of the cut.
  bool exact = false;              ///< The minimum over all balanced halves; otherwise only a bound from above.
};

/// The largest number of ranks for which every balanced pair of halves is tried.
constexpr std::size_t max_exact_bisection_ranks = 16;

/// The bisection of the ranks. Up to 16 ranks exact, by branch and bound over maximum flows; beyond, the best of splits
/// along hosts, rails, strides of the rank order and grown neighbourhoods, improved by exchanging ranks.
/// Nothing for a single rank. The same topology gives the same answer on every machine.
/// Cost: at worst some 20,000 flows for 16 ranks (a fraction of a second); a fixed budget of work beyond.
std::optional<Bisection> find_bisection(const Topology& topology);

/// What `senders` can send to all other ranks. Requires: some ranks, but not all.
Bisection cut_between_halves(const Topology& topology, const std::vector<Rank>& senders);

}  // namespace espalier
