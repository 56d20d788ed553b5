#include "planners/packing/find/shallow_trees.h"

#include <algorithm>
#include <utility>

namespace espalier::planners {

namespace {

/// Where a member of a tree can send to over arcs that have room.
struct Choice {
  std::uint32_t rank = 0;
  std::int64_t worth = 0;  ///< How much the rank could pass on.
  std::uint64_t place = 0;
};

class Grower {
 public:
  Grower(GrowingTrees& trees, std::size_t max_trees, const GrowthOrder& order, const WorkBudget& budget)
      : trees_(trees),
        max_trees_(max_trees),
        order_(order),
        budget_(budget),
        waiting_(trees.rank_count(), 0),
        came_(trees.network().vertex_count(), 0),
        level_(trees.network().vertex_count(), unseen),
        width_(trees.network().vertex_count(), 0) {}

  /// Trees are split only where none can grow as a whole.
  bool run() {
    while (true) {
      order_.level_by_level ? grow_by_levels() : grow_in_turn();
      if (trees_.is_complete()) return true;
      if (budget_.is_spent() || !split_somewhere()) return false;
    }
  }

 private:
  static constexpr std::uint32_t unseen = UINT32_MAX;
  static constexpr std::uint64_t max_places = 1U << 16U;

  [[nodiscard]] const ParentTree& tree(std::uint32_t t) const { return trees_.trees()[t]; }
  [[nodiscard]] std::uint32_t vertex_of(std::uint32_t rank) const { return trees_.network().vertex_of(Rank(rank)); }
  [[nodiscard]] bool is_full(std::uint32_t t) const { return tree(t).members.size() == trees_.rank_count(); }

  void grow_by_levels() {
    for (std::uint32_t depth = 0; depth < trees_.rank_count() && !trees_.is_complete(); ++depth) {
      for (std::uint32_t t = 0; t < trees_.trees().size(); ++t) grow_level(t, depth);
    }
  }

  void grow_in_turn() {
    for (std::uint32_t t = 0; t < trees_.trees().size(); ++t) {
      for (std::uint32_t depth = 0; depth < trees_.rank_count() && !is_full(t); ++depth) grow_level(t, depth);
    }
  }

  /// Takes the first path that part of a tree fits on, nearest to the root.
  bool split_somewhere() {
    if (order_.splits_early || trees_.trees().size() >= max_trees_) return false;
    may_split_once_ = true;
    const std::size_t before = trees_.trees().size();
    for (std::uint32_t t = 0; t < before && trees_.trees().size() == before; ++t) {
      for (std::uint32_t depth = 0; depth < trees_.rank_count() && !is_full(t); ++depth) {
        grow_level(t, depth);
        if (trees_.trees().size() > before) break;
      }
    }
    may_split_once_ = false;
    return trees_.trees().size() > before;
  }

  /// What a rank can still send.
  [[nodiscard]] std::int64_t room_out(std::uint32_t rank) const {
    std::int64_t room = 0;
    for (const std::uint32_t a : trees_.network().arcs_from(vertex_of(rank))) room += trees_.room()[a];
    return room;
  }
  /// The same after what it has promised to trees in which it has not had its turn.
  [[nodiscard]] std::int64_t worth(std::uint32_t rank) const { return room_out(rank) - waiting_[rank]; }

  void grow_level(std::uint32_t t, std::uint32_t depth) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> level;
    for (const std::uint32_t rank : tree(t).members) {
      if (tree(t).depth[rank] != depth) continue;
      level.emplace_back(-worth(rank), rank);
      if (order_.level_by_level && depth > 0) waiting_[rank] -= promised(t);
    }
    std::stable_sort(level.begin(), level.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [less, rank] : level) {
      if (is_full(t) || budget_.is_spent()) return;
      expand(t, rank, depth == 0 ? fair_share(t, rank) : trees_.rank_count());
    }
  }

  /// How much a member promises before its turn: enough that trees choose others to pass on.
  [[nodiscard]] std::int64_t promised(std::uint32_t t) const {
    return tree(t).weight * static_cast<std::int64_t>(trees_.trees().size());
  }

  /// Of what the root can send, what falls to this tree when those that come later get as much.
  [[nodiscard]] std::size_t fair_share(std::uint32_t t, std::uint32_t root) const {
    std::int64_t weights = 0;
    for (std::uint32_t later = t; later < trees_.trees().size(); ++later) {
      if (tree(later).members.size() == 1) weights += tree(later).weight;
    }
    return static_cast<std::size_t>(std::max<std::int64_t>(1, weights == 0 ? 1 : room_out(root) / weights));
  }

  /// Gives a member of a tree children, `most` at most.
  void expand(std::uint32_t t, std::uint32_t parent, std::size_t most) {
    std::vector<bool> tried(trees_.rank_count(), false);
    std::size_t given = 0;
    for (bool again = true; again && given < most && !is_full(t);) {
      again = false;
      for (const Choice& choice : choices_from(t, parent, tried)) {
        if (given == most || budget_.is_spent()) return;
        const std::vector<std::uint32_t> path = path_to(choice.rank);
        if (std::ranges::any_of(path, [&](std::uint32_t a) { return !is_open(t, a); })) {
          again = true;  // another path may be open
          continue;
        }
        tried[choice.rank] = true;
        const std::int64_t fitting = trees_.add(t, parent, path, choice.rank);
        if (fitting == tree(t).weight) {
          ++given;
          if (order_.level_by_level) waiting_[choice.rank] += promised(t);
        } else if (fitting > 0 && may_split()) {
          trees_.split(t, fitting);
          tried[choice.rank] = false;
          again = true;
          may_split_once_ = false;
        }
      }
    }
  }

  [[nodiscard]] bool may_split() const {
    return (order_.splits_early || may_split_once_) && trees_.trees().size() < max_trees_;
  }

  [[nodiscard]] bool is_open(std::uint32_t t, std::uint32_t a) const {
    return !trees_.is_blocked(t, a) && trees_.room()[a] >= (may_split() ? 1 : tree(t).weight);
  }

  /// The ranks outside a tree that a member reaches through vertices that only forward, by the fewest arcs and among
  /// those the widest, those first that could pass on most.
  std::vector<Choice> choices_from(std::uint32_t t, std::uint32_t parent, const std::vector<bool>& tried) {
    std::vector<Choice> choices;
    for (const std::uint32_t vertex : queue_) level_[vertex] = unseen;
    start_ = vertex_of(parent);
    queue_.assign(1, start_);
    level_[start_] = 0;
    width_[start_] = INT64_MAX;
    for (std::size_t done = 0; done < queue_.size(); ++done) {
      const std::uint32_t vertex = queue_[done];
      if (const Rank at = trees_.network().rank_at(vertex); !at.is_none() && vertex != start_) {
        const std::uint32_t rank = at.value();
        if (tree(t).depth[rank] != ParentTree::outside || tried[rank]) continue;
        choices.push_back({rank, worth(rank), place_of(t, rank)});
        continue;
      }
      for (const std::uint32_t a : trees_.network().arcs_from(vertex)) {
        if (!is_open(t, a)) continue;
        const std::uint32_t head = trees_.network().arcs()[a].head;
        const std::int64_t width = std::min(width_[vertex], trees_.room()[a]);
        if (level_[head] == unseen) {
          level_[head] = level_[vertex] + 1;
          queue_.push_back(head);
        } else if (level_[head] != level_[vertex] + 1 || width <= width_[head]) {
          continue;
        }
        width_[head] = width;
        came_[head] = a;
      }
    }
    std::stable_sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
      return a.worth != b.worth ? a.worth > b.worth : a.place < b.place;
    });
    return choices;
  }

  [[nodiscard]] std::uint64_t place_of(std::uint32_t t, std::uint32_t rank) const {
    if (order_.seed == 0) return rank;
    std::uint64_t mixed = ((order_.seed * max_places + t) * max_places + rank) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 29U)) * 0xbf58476d1ce4e5b9U;
    return mixed ^ (mixed >> 32U);
  }

  [[nodiscard]] std::vector<std::uint32_t> path_to(std::uint32_t rank) const {
    std::vector<std::uint32_t> path;
    for (std::uint32_t v = vertex_of(rank); v != start_; v = trees_.network().arcs()[came_[v]].tail) {
      path.push_back(came_[v]);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

  GrowingTrees& trees_;
  std::size_t max_trees_;
  GrowthOrder order_;
  const WorkBudget& budget_;
  bool may_split_once_ = false;
  std::vector<std::int64_t> waiting_;  ///< By rank: what it has promised.
  std::vector<std::uint32_t> came_, level_, queue_;
  std::vector<std::int64_t> width_;
  std::uint32_t start_ = 0;
};

}  // namespace

bool grow(GrowingTrees& trees, std::size_t max_trees, const GrowthOrder& order, const WorkBudget& budget) {
  return Grower(trees, max_trees, order, budget).run();
}

std::uint32_t depth_of(const GrowingTrees& trees) {
  std::uint32_t depth = 0;
  for (const ParentTree& tree : trees.trees()) depth = std::max(depth, std::ranges::max(tree.depth));
  return depth;
}

}  // namespace espalier::planners
