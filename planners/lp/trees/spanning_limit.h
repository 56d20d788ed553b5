#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <optional>
#include <vector>

#include "base/rational.h"
#include "planners/lp/trees/tree_oracle.h"

namespace espalier::planners {

/// What no trees of a program can pass, as prices prove it (docs/bounds.md).
struct SpanningLimit {
  Rational throughput;
  std::vector<BigInteger> prices;  ///< By resource.
};

/// A limit of the all_reduce program on a mirrored graph without symmetry, mostly within 2 % of its optimum and much
/// sooner there than column generation: multiplicative prices, a minimum spanning tree a round, and those of the parts
/// that the fastest cables join, for every rate that is the slowest of these; the best of the prices evaluated exactly.
/// Requires: an oracle of all_reduce_groups on these orbits. Source: S. Plotkin, D. Shmoys, E. Tardos, "Fast
/// approximation algorithms for fractional packing and covering problems", Mathematics of Operations Research 20
/// (1995).
SpanningLimit spanning_limit(const OrbitGraph& orbits, const TreeOracle& oracle);

}  // namespace espalier::planners
