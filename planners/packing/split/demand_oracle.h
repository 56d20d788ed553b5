#pragma once

// Tested by: tests/unit/planners/packing/split/pack_trees_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "planners/graph/work_budget.h"
#include "topology/analysis/max_flow.h"

namespace espalier::planners {

/// Keeps a graph that changes together with the condition under which trees can be packed into it: when a super source
/// brings every root its demand, the sum of all demands reaches every rank.
///
/// Edges are numbered from 0 in the order in which they are added; they come before trees. When the budget is spent
/// nothing is granted any more; callers then give up.
class DemandOracle {
 public:
  /// `rank_vertices[r]` is the vertex of rank r and `demands[r]` what the trees with root r have to carry.
  /// Requires: the capacities that will be added and the demands sum to less than 2^62.
  DemandOracle(std::size_t vertex_count, std::span<const std::uint32_t> rank_vertices,
               std::span<const std::int64_t> demands, WorkBudget& budget);

  std::uint32_t add_edge(std::uint32_t tail, std::uint32_t head, std::int64_t capacity);
  [[nodiscard]] std::int64_t capacity(std::uint32_t edge) const { return flow_.capacity(first_edge_ + edge); }
  void set_capacity(std::uint32_t edge, std::int64_t capacity) { flow_.set_capacity(first_edge_ + edge, capacity); }

  /// Adds the weight of a tree that has begun, which may start at any of its members. `vertex` stands for the tree.
  void add_tree(std::uint32_t vertex, std::int64_t weight, std::span<const std::uint32_t> members);

  [[nodiscard]] bool is_satisfied();
  /// How much of one more tree's weight, at most `most`, can take an edge from `tail`, which it has reached, to `head`.
  /// Requires: the condition holds. Cost: one flow.
  std::int64_t spare(std::uint32_t tail, std::uint32_t head, std::int64_t most);

  /// One edge of a change: it gains `sign` times the change's amount.
  struct Change {
    std::uint32_t edge = 0;
    std::int64_t sign = 0;
  };
  /// Makes as much of a change as the condition allows, at most `amount`, and returns how much that was.
  /// Requires: the condition holds; every cut loses the amount once or not at all. Cost: one flow per rank.
  std::int64_t apply_most(std::span<const Change> changes, std::int64_t amount);

 private:
  /// How much a rank is short of; 0 when it gets all.
  std::int64_t shortfall(std::size_t rank);
  void apply(std::span<const Change> changes, std::int64_t amount);

  MaxFlow<std::int64_t> flow_;
  WorkBudget& budget_;
  std::uint32_t source_;
  std::uint32_t first_edge_ = 0;
  std::int64_t total_ = 0;
  std::vector<std::uint32_t> sinks_;
  std::size_t likeliest_ = 0;  ///< The rank that was short last, tried first.
};

}  // namespace espalier::planners
