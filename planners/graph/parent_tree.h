#pragma once

// Tested by: tests/property/planners/large_networks_test.cpp

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace espalier::planners {

/// A tree over ranks by what enters each of them.
struct ParentTree {
  std::int64_t weight = 0;
  std::vector<std::uint32_t> members;            ///< Ranks, in the order in which they came: the root first.
  std::vector<std::uint32_t> depth;              ///< By rank; `outside` until it is a member.
  std::vector<std::uint32_t> parent;             ///< By rank.
  std::vector<std::vector<std::uint32_t>> path;  ///< By rank: arcs or edges between it and its parent.

  static constexpr std::uint32_t outside = UINT32_MAX;
  /// Of the root alone.
  static ParentTree of_root(std::uint32_t root, std::size_t ranks, std::int64_t weight) {
    ParentTree tree{weight, {root}, std::vector(ranks, outside), std::vector(ranks, root), {}};
    tree.path.resize(ranks);
    tree.depth[root] = 0;
    return tree;
  }
  [[nodiscard]] std::uint32_t root() const { return members.front(); }
  /// Depths are left as they are.
  void add(std::uint32_t rank, std::uint32_t above, std::vector<std::uint32_t> entry) {
    members.push_back(rank);
    parent[rank] = above;
    path[rank] = std::move(entry);
  }
};

/// How a tree enters a rank.
struct TreeEntry {
  std::uint32_t parent = 0;
  std::vector<std::uint32_t> path;
};

/// A spanning tree whose ranks get other parents.
class ReparentedTree {
 public:
  /// Requires: a tree that spans the ranks; its depths are computed anew.
  explicit ReparentedTree(ParentTree tree) : tree_(std::move(tree)), children_(tree_.parent.size()) {
    for (const std::uint32_t rank : tree_.members) {
      if (rank != tree_.root()) children_[tree_.parent[rank]].push_back(rank);
    }
    tree_.depth.assign(tree_.parent.size(), 0);
    set_depths_below(tree_.root());
  }

  [[nodiscard]] const ParentTree& tree() const { return tree_; }
  /// Whether a rank is `top` or below it.
  [[nodiscard]] bool is_below(std::uint32_t rank, std::uint32_t top) const {
    while (tree_.depth[rank] > tree_.depth[top]) rank = tree_.parent[rank];
    return rank == top;
  }
  /// Visits `top` and all ranks below it, each after its parent.
  template <class Visit>
  void for_each_below(std::uint32_t top, Visit visit) const {
    std::vector<std::uint32_t> open = {top};
    while (!open.empty()) {
      const std::uint32_t rank = open.back();
      open.pop_back();
      visit(rank);
      open.insert(open.end(), children_[rank].begin(), children_[rank].end());
    }
  }
  /// Requires: a parent that is not below the rank.
  void attach(std::uint32_t rank, TreeEntry entry) {
    std::erase(children_[tree_.parent[rank]], rank);
    children_[entry.parent].push_back(rank);
    tree_.parent[rank] = entry.parent;
    tree_.path[rank] = std::move(entry.path);
    set_depths_below(rank);
  }
  /// Makes `rank` the top of the part below `top`, to be attached next: edges between the two lead the other way, their
  /// paths turned by `reverse`. Requires: a rank that is `top` or below it.
  template <class Reverse>
  void turn(std::uint32_t top, std::uint32_t rank, Reverse reverse) {
    const std::uint32_t outside = tree_.parent[top];
    std::erase(children_[outside], top);
    children_[outside].push_back(rank);
    std::uint32_t below = rank;
    std::uint32_t above = tree_.parent[below];
    std::vector<std::uint32_t> path = std::move(tree_.path[below]);
    while (below != top) {
      std::erase(children_[above], below);
      children_[below].push_back(above);
      const std::uint32_t next = std::exchange(tree_.parent[above], below);
      path = std::exchange(tree_.path[above], reverse(std::move(path)));
      below = std::exchange(above, next);
    }
    tree_.parent[rank] = outside;
  }

 private:
  void set_depths_below(std::uint32_t top) {
    for_each_below(top, [&](std::uint32_t rank) {
      if (rank != tree_.root()) tree_.depth[rank] = tree_.depth[tree_.parent[rank]] + 1;
    });
  }

  ParentTree tree_;
  std::vector<std::vector<std::uint32_t>> children_;  ///< By rank.
};

/// A step of a search for better trees: what enters a rank is taken off the network, `cost.choose(tree, rank)` names a
/// better entry or none, and what enters the rank then is put on again (`cost.use(tree, path, sign)`). Whether the tree
/// has changed.
template <class Cost>
bool reparent(ReparentedTree& tree, std::uint32_t rank, Cost& cost) {
  cost.use(tree.tree(), tree.tree().path[rank], -1);
  std::optional<TreeEntry> entry = cost.choose(tree, rank);
  const bool changes = entry.has_value();
  if (changes) tree.attach(rank, *std::move(entry));
  cost.use(tree.tree(), tree.tree().path[rank], 1);
  return changes;
}

}  // namespace espalier::planners
