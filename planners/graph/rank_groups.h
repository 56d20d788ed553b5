#pragma once

// Tested by: tests/unit/planners/graph/rank_groups_test.cpp

#include <cstdint>
#include <vector>

#include "topology/topology.h"

namespace espalier::planners {

/// The ranks by the machine they sit in, near machines next to each other.
struct RankGroups {
  std::vector<std::vector<Rank>> groups;  ///< Never empty groups, each in rank order.
  std::vector<std::uint32_t> group_of;    ///< By rank.

  /// False when there is nothing to plan in two levels: one machine, or no machine with two ranks.
  [[nodiscard]] bool two_levels() const { return groups.size() > 1 && groups.size() < group_of.size(); }
};

/// Groups by `Node::host`; a rank without a host is a group of its own. Where no rank has one, ranks that fast links
/// join are a group, if all such groups are alike and the links between them at most half as fast; else all are
/// together. The first group holds rank 0; each next one is the nearest that is left, in links from the one before.
/// Cost: O(groups x links) at worst; past 1,024 groups they stay in the order of their first ranks.
RankGroups group_ranks(const Topology& topology);

/// As group_ranks, but hosts that NVLink or xGMI joins are one machine, as they are for NCCL (a rack of NVL72).
RankGroups group_domains(const Topology& topology);

/// All ranks, group by group: the order in which recursive schemes number them, so that close ranks have close numbers.
std::vector<Rank> order_ranks(const RankGroups& groups);

}  // namespace espalier::planners
