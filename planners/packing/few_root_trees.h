#pragma once

#include <optional>
#include <vector>

#include "base/rational.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology.h"

namespace espalier {

/// Few trees of one root that reach the rate of its smallest cut, where fewer are found than are given: in-trees where
/// `direction` is reversed. Nothing past 80 ranks, where a node has a backplane or a switch takes in and gives out
/// unlike amounts, and where the rates have too fine a common divisor.
///
/// One tree after the other, each taking as much as leaves the rest complete: by Edmonds' theorem, what is left can be
/// completed exactly when every rank is still behind cuts of no less than what is left to carry, which a maximum flow
/// per rank says. A tree that crosses a tight cut more than once leaves nothing; then the cut becomes a price, and the
/// tree is changed until it is cheap (tree_balance.h). Trees are as high as ranks that pass on to eight others make
/// them. With a `gap` eight to ten trees of equal weight are tried first, copies of known ones that are changed
/// until no link has too many; and of trees of unlike weight the last may be left out, up to that part of the time.
/// Requires: spanning trees of that root. Cost: some hundred maximum flows per rank. Source: J. Edmonds, "Edge-disjoint
/// branchings", 1973.
std::optional<std::vector<Arborescence>> few_root_trees(const Topology& topology, Direction direction, Rank root,
                                                        const std::vector<Arborescence>& trees,
                                                        const Rational& gap = 0);

}  // namespace espalier
