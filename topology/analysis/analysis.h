#pragma once

// Tested by: tests/unit/topology/analysis/describe_test.cpp

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "topology/topology.h"

namespace espalier {

/// The nodes of one kind, ranks and others apart.
struct NodeGroup {
  NodeKind kind = NodeKind::gpu;
  bool are_ranks = false;
  std::vector<NodeId> nodes;
};

/// Directed links that are alike: class, values and the kinds of their ends, whichever way round.
struct LinkGroup {
  LinkValues values;
  NodeKind one_end = NodeKind::gpu;
  NodeKind other_end = NodeKind::gpu;
  std::size_t count = 0;
};

/// Nodes of one kind from which the same links lead.
struct EgressGroup {
  NodeKind kind = NodeKind::gpu;
  std::map<std::string, std::size_t> links;  ///< Class, or "of 25 GB/s" where a link has none, to number of links.
  Bandwidth total;                           ///< Of all these links; at most 2^63 - 1.
  std::vector<NodeId> nodes;
};

/// How a rank reaches another without passing through a third one.
struct Connection {
  std::size_t hops = 0;          ///< Links of a shortest way; 0 when all ways lead through other ranks.
  std::size_t direct_links = 0;  ///< Links from rank to rank.
  Bandwidth bandwidth;           ///< What all shortest ways carry together when nothing else moves.
};

/// In order of first appearance in the topology.
std::vector<NodeGroup> group_nodes(const Topology& topology);
std::vector<LinkGroup> group_links(const Topology& topology);
std::vector<EgressGroup> group_egress(const Topology& topology);

/// The connections from one rank to every rank, by rank; that to itself has no hops.
/// Cost: a maximum flow over the shortest ways to each rank.
std::vector<Connection> connections_from(const Topology& topology, Rank src);

/// What the ranks of one group can send to those of each other group without passing through ranks of a third one, in
/// rows by sending group; 0 from a group to itself. Requires: `group_of_rank` gives each rank a number below `groups`.
/// Cost: groups^2 maximum flows.
std::vector<std::vector<Bandwidth>> group_to_group(const Topology& topology,
                                                   const std::vector<std::size_t>& group_of_rank, std::size_t groups);

}  // namespace espalier
