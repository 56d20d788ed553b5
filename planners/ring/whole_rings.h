#pragma once

// Tested by: tests/unit/planners/ring/ring_test.cpp

#include <cstdint>
#include <vector>

#include "planners/graph/rank_groups.h"
#include "planners/ring/ring.h"

namespace espalier::planners {

/// Sum of the rings' rates.
std::int64_t total_rate(const std::vector<Ring>& rings);

/// The set of rings with the largest total rate that bounded searches find, in bytes per second, each ring at the rate
/// of a link that it fills, as an NCCL channel has one speed; then slower ones, and each as wide as its links allow.
/// Only where no cycle exists at whole rates are parts of them tried. Tries no rate above the limit and stops when that
/// is reached. Cost: a fixed number of search steps per rank and rate.
std::vector<Ring> search_whole_rings(const Topology& topology, const RankGroups& groups, const Rational& limit);

/// The distinct rates of links, the largest first, a dozen at most.
std::vector<std::int64_t> whole_rates(const Topology& topology);

}  // namespace espalier::planners
