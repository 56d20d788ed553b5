#pragma once

// Tested by: tests/property/planners/changing_tree_test.cpp

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "planners/symmetric/part_trees.h"
#include "planners/symmetric/shift_chain.h"

namespace espalier::planners {

/// A tree in depth-first order: what hangs on a rank is one range of it, so that questions about a tree of many ranks
/// cost O(log ranks) and not a walk along a chain, which may have a link for every rank. Memory: 36 bytes a rank.
class IndexedTree {
 public:
  /// Requires: every rank hangs on rank 0.
  IndexedTree(const SliceTree& tree, std::span<const ShiftPath> paths);

  [[nodiscard]] std::span<const std::uint32_t> children(std::uint32_t rank) const {
    return std::span(children_).subspan(first_child_[rank], first_child_[rank + 1] - first_child_[rank]);
  }
  /// Where a rank stands in depth-first order, and where what hangs on it ends.
  [[nodiscard]] std::uint32_t begin(std::uint32_t rank) const { return begin_[rank]; }
  [[nodiscard]] std::uint32_t end(std::uint32_t rank) const { return end_[rank]; }
  /// Whether a rank hangs below another one or is it.
  [[nodiscard]] bool is_below(std::uint32_t rank, std::uint32_t top) const {
    return begin_[top] <= begin_[rank] && begin_[rank] < end_[top];
  }
  /// Seconds of latency from the root to a rank.
  [[nodiscard]] double chain(std::uint32_t rank) const { return longest_[begin_.size() + begin_[rank]]; }
  /// The longest chain to a rank of a range of the depth-first order; 0 to none.
  [[nodiscard]] double longest_chain(std::uint32_t first, std::uint32_t last) const;

 private:
  std::vector<std::uint32_t> first_child_;  // by rank, and the end
  std::vector<std::uint32_t> children_;
  std::vector<std::uint32_t> begin_, end_;  // by rank
  std::vector<double> longest_;  // a heap of maxima: of node i those of 2i and 2i+1, leaves in depth-first order
};

/// A rank's edge in a tree.
struct Hanging {
  std::uint32_t rank = 0;
  std::uint32_t parent = 0;
  std::uint32_t path = 0;  ///< Of PartTrees::paths.
};

/// The tree of one slice of one shard while ranks are hung elsewhere. Ranks are those of rank 0's tree. Questions cost
/// O(changed ranks) for each changed edge on the way.
class ChangingTree {
 public:
  /// All of them outlive this one.
  ChangingTree(const PartTrees& parts, const SliceTree& tree, const IndexedTree& before, const Shifts& shifts,
               std::uint32_t shard)
      : parts_(parts), tree_(tree), before_(before), shifts_(shifts), shard_(shard) {}

  [[nodiscard]] Hanging now(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t parent(std::uint32_t rank) const { return now(rank).parent; }
  [[nodiscard]] bool is_changed(std::uint32_t rank) const { return changed_.contains(before_.begin(rank)); }
  /// By place in the depth-first order of the tree before.
  [[nodiscard]] const std::map<std::uint32_t, Hanging>& changed() const { return changed_; }
  void hang(const Hanging& hanging) { changed_.insert_or_assign(before_.begin(hanging.rank), hanging); }

  /// Calls with each edge, where it is, between a rank and its parent over one of the paths, as long as that returns
  /// true.
  template <class Use>
  void for_edges(const Hanging& hanging, const Use& use) const {
    const OrbitGraph& orbits = shifts_.orbits();
    const std::uint32_t begin = tree_.is_inward ? hanging.rank : hanging.parent;
    const Automorphism there = shifts_.by(shifts_.sum(begin, shard_));
    for (const std::uint32_t edge : parts_.paths[hanging.path].edges) {
      if (!use(orbits.edge_image(there, edge))) return;
    }
  }
  [[nodiscard]] std::vector<std::uint32_t> edges(const Hanging& hanging) const;
  /// Which rank a path from there ends at, or inward which one it leads there from.
  [[nodiscard]] std::uint32_t other_end(std::uint32_t rank, std::uint32_t path) const;
  /// The other way round: which rank could hang on this parent on a path.
  [[nodiscard]] std::uint32_t reached_from(std::uint32_t parent, std::uint32_t path) const;
  /// The paths on which a rank could hang on this parent.
  [[nodiscard]] const std::vector<std::uint32_t>& paths_between(std::uint32_t rank, std::uint32_t parent) const;

  /// Whether a rank hangs below another one or is it.
  [[nodiscard]] bool is_below(std::uint32_t rank, std::uint32_t top) const;
  /// Seconds of latency from the root to the rank farthest from it that hangs on a changed edge; 0 where none is.
  /// Every rank hangs on the root, or this ends the program.
  [[nodiscard]] double longest_changed_chain() const;

 private:
  /// The lowest rank at or above one whose edge is changed; null where none is.
  [[nodiscard]] const Hanging* changed_above(std::uint32_t rank) const;
  [[nodiscard]] double chain_to(std::uint32_t rank) const;
  /// From a rank to the farthest of those below it that hang there by edges of the tree before.
  [[nodiscard]] double height_left(std::uint32_t rank) const;

  const PartTrees& parts_;
  const SliceTree& tree_;
  const IndexedTree& before_;
  const Shifts& shifts_;
  std::uint32_t shard_;
  std::map<std::uint32_t, Hanging> changed_;
};

}  // namespace espalier::planners
