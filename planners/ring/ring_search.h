#pragma once

// Tested by: tests/unit/planners/ring/ring_search_test.cpp

#include <cstdint>
#include <vector>

#include "planners/graph/rank_groups.h"
#include "planners/graph/residual.h"
#include "planners/graph/work_budget.h"
#include "planners/ring/ring.h"

namespace espalier::planners {

/// The most rings of this rate that any search could find: each takes one link into and one out of every rank, or two
/// of each when it also runs backwards.
std::size_t max_rings(const Residual& residual, std::int64_t rate, bool both_ways);

/// As many rings of `rate` as depth-first search with backtracking over ring sets finds in what is left; all of them
/// when the work limit is not reached. With `both_ways` every ring comes with its reverse.
/// Leaves `residual` as it was.
std::vector<Ring> search_rings(Residual& residual, std::int64_t rate, bool both_ways, WorkBudget& work);

/// As `search_rings` with `both_ways`, over direct links only, by extending a path and rotating it at its end, from
/// seeded random starts: for large tori, meshes and other direct networks, where backtracking gets lost.
/// Source: L. Posa, "Hamiltonian circuits in random graphs", Discrete Mathematics 14, 1976 (rotation-extension).
std::vector<Ring> rotate_rings(Residual& residual, std::int64_t rate, WorkBudget& work);

/// Rings of `rate` that go through one machine after the other: in each a path from the rank next to the rail of entry
/// to the rank next to the rail of exit. Ring by ring the rails move on, so that every rail carries one.
/// Requires: groups.two_levels().
std::vector<Ring> cross_hosts(Residual& residual, const RankGroups& groups, std::int64_t rate, WorkBudget& work);

}  // namespace espalier::planners
