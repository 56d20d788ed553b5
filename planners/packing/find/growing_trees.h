#pragma once

// Tested by: tests/unit/planners/packing/find/growing_trees_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "planners/graph/parent_tree.h"
#include "planners/graph/work_budget.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

/// A network in which trees of one root grow side by side, with a proof at every step that all can be completed.
///
/// Every tree has a weight, and takes that much of each arc that it uses. Trees that span some ranks can be completed
/// in what is left exactly when every set of vertices that no rank of some trees lies in has room on the arcs into it
/// for those trees (Edmonds' theorem for branchings that have begun). A flow per rank shows that: each tree's weight
/// starts at any of the tree's ranks, and all of it reaches the rank. The flows are kept; an arc that is taken costs a
/// search per rank whose flow was on it. With switches that take in as much as they give out this is exact (switches
/// could be split off); with others trees may get stuck, and is_complete says so.
///
/// Invariants: (1) room >= 0; (2) every rank's flow fits the room and brings it all the weight.
/// Source: J. Edmonds, "Edge-disjoint branchings", 1973; J. Bang-Jensen, A. Frank, B. Jackson, "Preserving and
/// increasing local edge-connectivity in mixed graphs", 1995.
class GrowingTrees {
 public:
  /// `room` by arc, in place of the capacities. Requires: a network and a budget that outlive the trees; weights > 0
  /// that sum to less than 2^60.
  GrowingTrees(const FlowNetwork& network, std::vector<std::int64_t> room, Rank root,
               std::span<const std::int64_t> weights, WorkBudget& budget);

  /// Whether there are trees of these weights at all. Everything below requires it.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  [[nodiscard]] bool is_complete() const;
  [[nodiscard]] const FlowNetwork& network() const { return network_; }
  [[nodiscard]] std::size_t rank_count() const { return network_.rank_count(); }
  [[nodiscard]] const std::vector<ParentTree>& trees() const { return trees_; }
  /// Whether no path of a tree may use an arc any more.
  [[nodiscard]] bool is_blocked(std::uint32_t tree, std::uint32_t arc) const { return is_blocked_[tree][arc]; }
  /// By arc: what no tree has taken.
  [[nodiscard]] const std::vector<std::int64_t>& room() const { return room_; }

  /// Adds a rank below a member of a tree if all trees can be completed then. If not, says how much less weight than
  /// the tree's would be possible, 0 for none. Requires: a path of arcs from the parent through vertices that are no
  /// ranks.
  std::int64_t add(std::uint32_t tree, std::uint32_t parent, const std::vector<std::uint32_t>& path,
                   std::uint32_t rank);
  /// Divides a tree into two of the same shape; the second one, last of all, gets what is above `weight`.
  void split(std::uint32_t tree, std::int64_t weight);

 private:
  /// What a flow changed, so that it can be taken back.
  struct Change {
    std::size_t place = 0;
    std::int64_t amount = 0;
    bool is_entry = false;
  };
  /// Vertices that trees still have to enter by every arc that has room.
  struct TightSet {
    std::vector<bool> is_inside;         ///< By vertex.
    std::vector<std::uint32_t> entries;  ///< Arcs.
    std::vector<bool> is_entered;        ///< By tree: whether it has a member inside, and may not enter again.
  };
  /// How a search came to a vertex: along an arc, against one, or by another member of a tree.
  struct Step {
    std::uint32_t from = 0;
    std::uint32_t by = 0;
    std::uint8_t kind = 0;
  };

  [[nodiscard]] std::size_t flow_place(std::size_t sink, std::size_t arc) const { return sink * room_.size() + arc; }
  [[nodiscard]] std::size_t entry_place(std::size_t sink, std::size_t rank, std::size_t tree) const {
    return ((tree * rank_count()) + sink) * rank_count() + rank;
  }
  void change_flow(std::size_t place, std::int64_t amount);
  void change_entry(std::size_t sink, std::size_t rank, std::size_t tree, std::int64_t amount);
  /// Moves up to `amount` of a sink's flow so that it leaves `from` and arrives at `to`; what was moved.
  std::int64_t push(std::size_t sink, std::uint32_t from, std::uint32_t to, std::int64_t amount);
  bool search(std::size_t sink, std::uint32_t from, std::uint32_t to);
  std::int64_t apply_path(std::size_t sink, std::uint32_t from, std::uint32_t to, std::int64_t amount);
  void take_back();
  /// Remembers that nothing can be spared on the arcs into what the last search did not reach.
  void note_tight_set();
  void enter(std::size_t tree, TightSet& tight);

  const FlowNetwork& network_;
  std::vector<std::int64_t> room_;
  std::uint32_t root_;
  WorkBudget& budget_;
  std::vector<ParentTree> trees_;
  std::vector<std::vector<bool>> is_blocked_;  ///< By tree and arc.
  std::vector<TightSet> tight_sets_;
  std::vector<std::int64_t> flow_;       ///< By sink and arc.
  std::vector<std::int64_t> entry_;      ///< By tree, sink and rank: what of the tree's weight starts there.
  std::vector<std::int64_t> entry_sum_;  ///< By sink and rank.
  std::vector<Change> changes_;
  std::vector<Step> came_;
  std::vector<std::uint32_t> seen_, tree_seen_;
  std::vector<std::uint32_t> queue_;
  std::uint32_t stamp_ = 0;
  bool is_possible_ = true;
};

}  // namespace espalier::planners
