#pragma once

// Tested by: tests/property/planners/ring_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"
#include "topology/topology.h"

namespace espalier::planners {

/// The network as the linear programs see it: edges that each use up one or more resources.
///
/// Parallel links are one edge. A resource is an edge's bandwidth or a node's backplane. Where every cable is duplex
/// (`mirrored`), an edge and its mirror share one resource of twice the bandwidth: a program whose mirror image is
/// itself has a solution that is its own mirror image, so this changes no optimum and halves the program.
struct ResourceGraph {
  struct Edge {
    std::uint32_t tail;
    std::uint32_t head;
    std::uint32_t mirror;                  ///< The edge from head to tail; meaningful when the graph is mirrored.
    std::vector<std::uint32_t> resources;  ///< What one byte over this edge takes one byte of.
    std::vector<LinkId> links;             ///< The parallel links, in id order.
  };

  std::vector<Edge> edges;
  std::vector<std::vector<std::uint32_t>> out_edges, in_edges;  ///< By node.
  std::vector<BigInteger> capacity;                             ///< By resource, in `unit` bytes per second.
  BigInteger unit = 1;
  std::vector<std::uint32_t> rank_nodes;      ///< By rank.
  std::vector<std::uint32_t> node_ranks;      ///< By node; `no_rank` for nodes that only forward.
  std::vector<std::uint32_t> node_resources;  ///< By node: its backplane, or `no_resource`.
  std::vector<bool> is_dead_end;              ///< By node: a rank that must not relay, so that no path passes it.
  std::uint32_t first_relaying = no_rank;     ///< A rank, or none where none may relay.
  bool has_dead_ends = false;
  bool mirrored = false;

  static constexpr std::uint32_t no_rank = UINT32_MAX;
  static constexpr std::uint32_t no_resource = UINT32_MAX;
  [[nodiscard]] std::uint32_t rank_count() const { return static_cast<std::uint32_t>(rank_nodes.size()); }
};

/// `fold` lets mirrored edges share a resource; without it the graph is never `mirrored`.
ResourceGraph make_resource_graph(const Topology& topology, bool fold);

/// One edge of a tree of ranks: a path over a graph's edges from one rank to another, through nodes that are not
/// ranks.
struct RankPath {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::vector<std::uint32_t> edges;
};

/// Edges of paths from rank to rank, one path after the other, path by path.
std::vector<RankPath> split_paths(const ResourceGraph& graph, std::span<const std::uint32_t> edges);

/// The path from rank to rank that ends at a rank's node, in the direction of the data: `next_edge` says by node which
/// edge leads on, `towards` that it leaves the node. Requires: a rank behind each of these edges in the end.
std::vector<std::uint32_t> path_from(const ResourceGraph& graph, const std::vector<std::uint32_t>& next_edge,
                                     std::uint32_t node, bool towards);

}  // namespace espalier::planners
