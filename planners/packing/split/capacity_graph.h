#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// Capacity of an edge that runs along these arcs of the flow network, in travelling order.
struct PathShare {
  std::vector<std::uint32_t> arcs;
  std::int64_t amount = 0;
};

/// A directed graph whose edges remember the physical paths that their capacity stands for. Switches leave it one by
/// one: capacity into and out of a switch becomes capacity between its neighbours, along the joined paths.
///
/// Invariants: (1) at most one edge from a vertex to another; (2) an edge's capacity is the sum of its shares' amounts;
/// (3) over all edges, the shares that use an arc sum to at most the arc's capacity at the start.
class CapacityGraph {
 public:
  struct Edge {
    std::uint32_t tail = 0;
    std::uint32_t head = 0;
    std::int64_t capacity = 0;
    std::vector<PathShare> shares;
  };

  /// The network with `capacities` (one per arc) in place of its own.
  CapacityGraph(const FlowNetwork& network, std::span<const std::int64_t> capacities);

  [[nodiscard]] std::size_t vertex_count() const { return out_.size(); }
  [[nodiscard]] std::size_t edge_count() const { return edges_.size(); }
  [[nodiscard]] const Edge& edge(std::uint32_t id) const { return edges_[id]; }
  /// Edges that leave or enter a vertex, also empty ones, in the order in which they came.
  [[nodiscard]] std::span<const std::uint32_t> out_edges(std::uint32_t vertex) const { return out_[vertex]; }
  [[nodiscard]] std::span<const std::uint32_t> in_edges(std::uint32_t vertex) const { return in_[vertex]; }

  /// The edge from `tail` to `head`; an empty one is added when there is none.
  std::uint32_t find_or_add(std::uint32_t tail, std::uint32_t head);
  void add_share(std::uint32_t edge, PathShare share);
  /// Takes capacity off an edge and returns the paths it stood for, cutting the last one.
  /// Requires: amount <= capacity.
  std::vector<PathShare> take(std::uint32_t edge, std::int64_t amount);
  /// Turns capacity through a vertex into capacity past it; what would return to its tail is dropped.
  /// Requires: `in` enters the vertex that `out` leaves; amount <= both capacities.
  void split_off(std::uint32_t in, std::uint32_t out, std::int64_t amount);

 private:
  std::vector<Edge> edges_;
  std::vector<std::vector<std::uint32_t>> out_, in_;
  std::unordered_map<std::uint64_t, std::uint32_t> edge_by_ends_;
};

/// The edges with capacity into and out of a switch.
struct SwitchEdges {
  SwitchEdges(const CapacityGraph& graph, std::uint32_t vertex);

  std::vector<std::uint32_t> in, out;
};

/// Splits off pairs of a switch's edges in any order until one side has no capacity left; what would return to its
/// tail comes last.
void join_through(CapacityGraph& graph, const SwitchEdges& edges);

}  // namespace espalier::planners
