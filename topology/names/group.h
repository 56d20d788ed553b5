#pragma once

// Tested by: tests/unit/topology/names/group_test.cpp

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace espalier {

/// The gpu and cpu nodes that a list names, in the order of the list: node ids and ranges ("gpu[0-3], box1.gpu[*]") of
/// the topology format, parted by commas; "all" (where no node is called so) stands for the ranks of the topology.
/// Errors: invalid_input for an empty list, a malformed range, a name or range that no node has, a node that is neither
/// gpu nor cpu, and a node named twice.
Result<std::vector<NodeId>> find_rank_nodes(const Topology& topology, std::string_view list);

/// The same network with these nodes as its only ranks: a process group. Ranks are numbered in node order as ever, all
/// other nodes only forward, and node and link ids, and with them routes, stay. A rank that must not relay forwards
/// nothing when it is outside the group: it keeps its node id and loses its links, which changes the ids of the others.
/// Errors: invalid_input without any node, for one that is neither gpu nor cpu, and for one given twice.
Result<Topology> with_ranks(const Topology& topology, std::span<const NodeId> nodes);

}  // namespace espalier
