#include "planners/lp/trees/even_trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "planners/graph/grow_tree.h"
#include "planners/graph/parent_tree.h"
#include "planners/graph/path_search.h"
#include "planners/graph/work_budget.h"
#include "planners/lp/trees/pass_loads.h"

namespace espalier::planners {

namespace {

constexpr std::int64_t max_steps = 50'000'000;

/// Trees that are changed edge by edge, and what they load.
class EvenTreeSearch {
 public:
  EvenTreeSearch(const ResourceGraph& graph, double limit)
      : graph_(graph), limit_(limit), loads_(graph), search_(graph), inside_(graph.rank_count(), 0) {}

  /// So many trees of a root, or pairs of them.
  EvenTrees pack(std::uint32_t root, std::uint32_t count, WorkBudget& budget) {
    begin(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      grow(root, false);
      if (!graph_.mirrored) grow(root, true);
    }
    return improved(budget);
  }

  /// One tree of every rank.
  EvenTrees pack_all_roots(bool inward, WorkBudget& budget) {
    begin(graph_.rank_count());
    for (std::uint32_t root = 0; root < graph_.rank_count(); ++root) grow(root, inward);
    return improved(budget);
  }

  /// Whether trees, so many of them, may carry `throughput`: at every rank, and at all together, links hold as many
  /// whole passes as trees of ranks have edges.
  [[nodiscard]] bool has_room(std::uint32_t count, double throughput) const {
    const std::uint32_t n = graph_.rank_count();
    double all = 0;
    for (const std::uint32_t node : graph_.rank_nodes) {
      double here = 0;
      for (const std::uint32_t e : graph_.out_edges[node]) {
        here += std::floor(loads_.room(e, count / throughput) * (1 + rounding));
      }
      if (here < count) return false;
      all += here;
    }
    return all >= 2.0 * count * (n - 1);
  }

 private:
  struct Tree {
    ReparentedTree tree;
    bool inward;
  };

  /// `fullness` 1 is what so many trees would load at the limit.
  void begin(std::uint32_t count) {
    loads_.clear(count / limit_);
    loads_.set_sharpness(sharpness.front());
    trees_.clear();
  }

  void grow(std::uint32_t root, bool inward) {
    std::vector<double> lengths(graph_.edges.size());
    for (std::uint32_t e = 0; e < lengths.size(); ++e) lengths[e] = loads_.cost(e);
    trees_.push_back({ReparentedTree(grow_tree(graph_, root, inward, lengths)), inward});
    for (const auto& path : trees_.back().tree.tree().path) loads_.add(path, 1);
  }

  EvenTrees improved(WorkBudget& budget) {
    for (const unsigned power : sharpness) {
      loads_.set_sharpness(power);
      repeat(max_passes, budget, [&](Tree& tree, std::uint32_t rank) { return improve(tree, rank); });
    }
    loads_.limit(std::max(loads_.fullest(), good_enough) * (1 + rounding), slack);
    repeat(max_shallow_passes, budget, [&](Tree& tree, std::uint32_t rank) { return raise(tree, rank); });
    return result();
  }

  /// Changes trees at one rank after the other until nothing changes.
  template <class Change>
  void repeat(int passes, WorkBudget& budget, Change change) {
    bool changed = true;
    for (int pass = 0; pass < passes && changed; ++pass) {
      changed = false;
      for (Tree& tree : trees_) {
        for (std::uint32_t rank = 0; rank < graph_.rank_count(); ++rank) {
          if (rank == tree.tree.tree().root()) continue;
          if (change(tree, rank)) changed = true;
          if (!budget.spend(static_cast<std::int64_t>(search_.reached().size()))) return;
        }
      }
    }
  }

  /// Takes off what enters a rank and joins the tree again where that costs least. On a mirrored graph anywhere between
  /// its two parts, which makes a tree that cannot be improved a shortest one at these prices; else at the rank.
  bool improve(Tree& changed, std::uint32_t rank) {
    ReparentedTree& tree = changed.tree;
    const std::vector<std::uint32_t> before = tree.tree().path[rank];
    loads_.add(before, -1);
    ++stamp_;
    starts_.clear();
    tree.for_each_below(rank, [&](std::uint32_t below) {
      inside_[below] = stamp_;
      const std::uint32_t node = graph_.rank_nodes[below];
      if (below == rank || (graph_.mirrored && !graph_.is_dead_end[node])) starts_.push_back(node);
    });
    const double cost = loads_.cost(before) * (1 - rounding);
    search_.run(starts_, !changed.inward, false, &cost,
                [&](double length, std::uint32_t e) { return length + loads_.cost(e); });
    const std::uint32_t other = nearest_outside();
    if (other != none) join(changed, rank, other);
    if (other == none) loads_.add(before, 1);
    return other != none;
  }

  /// The rank outside of the part that a search has started from that is nearest to it, if it has a path.
  [[nodiscard]] std::uint32_t nearest_outside() const {
    std::uint32_t best = none;
    for (const std::uint32_t node : search_.reached()) {
      const std::uint32_t rank = graph_.node_ranks[node];
      if (rank == ResourceGraph::no_rank || graph_.is_dead_end[node] || inside_[rank] == stamp_) continue;
      if (best == none || is_nearer(rank, best)) best = rank;
    }
    return best;
  }
  [[nodiscard]] bool is_nearer(std::uint32_t rank, std::uint32_t other) const {
    const auto key = [&](std::uint32_t r) { return std::pair(search_.distances()[graph_.rank_nodes[r]], r); };
    return key(rank) < key(other);
  }

  /// Joins the part of a tree below `top` to a rank outside of it by the path that the search has found.
  void join(Tree& changed, std::uint32_t top, std::uint32_t outside) {
    const bool towards = !changed.inward;
    std::vector<std::uint32_t> path = path_from(graph_, search_.edges(), graph_.rank_nodes[outside], towards);
    const ResourceGraph::Edge& end = graph_.edges[towards ? path.back() : path.front()];
    const std::uint32_t rank = graph_.node_ranks[towards ? end.head : end.tail];
    changed.tree.turn(top, rank, [&](std::vector<std::uint32_t> turned) {
      std::ranges::reverse(turned);
      for (std::uint32_t& e : turned) e = graph_.edges[e].mirror;
      return turned;
    });
    loads_.add(path, 1);
    changed.tree.attach(rank, {outside, std::move(path)});
  }

  /// Gives a rank a parent that is nearer to the root, along what has room.
  bool raise(Tree& changed, std::uint32_t rank) {
    ReparentedTree& tree = changed.tree;
    const std::vector<std::uint32_t> before = tree.tree().path[rank];
    loads_.add(before, -1);
    constexpr double too_long = 1e9;
    const auto hops = [&](double length, std::uint32_t e) { return loads_.fits(e) ? length + 1 : too_long; };
    const std::uint32_t node = graph_.rank_nodes[rank];
    search_.run(std::span(&node, 1), !changed.inward, false, &too_long, hops);
    std::uint32_t best = none;
    std::uint32_t least = tree.tree().depth[rank] - 1;
    for (const std::uint32_t reached : search_.reached()) {
      const std::uint32_t other = graph_.node_ranks[reached];
      if (other == ResourceGraph::no_rank || graph_.is_dead_end[reached]) continue;
      if (tree.tree().depth[other] >= least || tree.is_below(other, rank)) continue;
      best = other;
      least = tree.tree().depth[other];
    }
    if (best == none) {
      loads_.add(before, 1);
    } else {
      join(changed, rank, best);
    }
    return best != none;
  }

  [[nodiscard]] EvenTrees result() const {
    EvenTrees found;
    found.throughput = limit_ / loads_.fullest();
    found.full_links = loads_.count_fuller(slack);
    for (const Tree& tree : trees_) {
      std::vector<std::uint32_t>& edges = (tree.inward ? found.in_trees : found.out_trees).emplace_back();
      for (const auto& path : tree.tree.tree().path) edges.insert(edges.end(), path.begin(), path.end());
    }
    return found;
  }

  static constexpr std::array<unsigned, 4> sharpness = {4, 8, 16, 32};
  static constexpr int max_passes = 6;
  static constexpr int max_shallow_passes = 20;
  static constexpr double good_enough = 1.005;
  /// Chunks that meet at a link which is always busy fall out of step and make the next link wait, so that shallow
  /// trees leave some room.
  static constexpr double slack = 0.9;
  static constexpr double rounding = 1e-9;
  static constexpr std::uint32_t none = UINT32_MAX;

  const ResourceGraph& graph_;
  double limit_;
  PassLoads loads_;
  PathSearch<double> search_;
  std::vector<Tree> trees_;
  std::vector<std::uint32_t> inside_;  ///< By rank: the last time that it was in the part that is cut off.
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> starts_;
};

}  // namespace

EvenTrees find_even_trees(const ResourceGraph& graph, std::uint32_t root, double limit,
                          const std::function<void(const EvenTrees&)>& on_better) {
  constexpr std::uint32_t max_trees = 64;
  constexpr double min_gain = 1.01;
  constexpr double near_limit = 0.995;
  constexpr std::size_t enough_trees = 8;
  constexpr double fewer = 0.9;
  EvenTreeSearch search(graph, limit);
  WorkBudget budget(max_steps);
  EvenTrees best;
  const auto take = [&](EvenTrees found) {
    best = std::move(found);
    if (on_better) on_better(best);
  };
  for (std::uint32_t count = 1; count <= max_trees && !budget.is_spent(); ++count) {
    if (count > 1 && !search.has_room(count, best.throughput * min_gain)) continue;
    EvenTrees found = search.pack(root, count, budget);
    if (found.throughput >= best.throughput * min_gain) take(std::move(found));
    if (best.throughput >= near_limit * limit) break;
  }
  // A link holds a whole number of trees: a few that fill it leave room on it when there are more of them.
  for (std::size_t count = 2 * best.out_trees.size(); count <= enough_trees && !budget.is_spent(); count *= 2) {
    EvenTrees found = search.pack(root, static_cast<std::uint32_t>(count), budget);
    if (found.throughput >= best.throughput &&
        static_cast<double>(found.full_links) < fewer * static_cast<double>(best.full_links))
      take(std::move(found));
  }
  return best;
}

EvenTrees find_even_trees_of_all(const ResourceGraph& graph, bool inward, double limit) {
  WorkBudget budget(max_steps);
  return EvenTreeSearch(graph, limit).pack_all_roots(inward, budget);
}

std::uint32_t widest_rank(const ResourceGraph& graph) {
  const PassLoads loads(graph);
  const auto width = [&](std::uint32_t rank) {
    double out = 0;
    double in = 0;
    for (const std::uint32_t e : graph.out_edges[graph.rank_nodes[rank]]) out += loads.room(e, 1);
    for (const std::uint32_t e : graph.in_edges[graph.rank_nodes[rank]]) in += loads.room(e, 1);
    return std::min(out, in);
  };
  std::uint32_t widest = graph.first_relaying;
  for (std::uint32_t rank = 0; rank < graph.rank_count(); ++rank) {
    if (!graph.is_dead_end[graph.rank_nodes[rank]] && width(rank) > width(widest)) widest = rank;
  }
  return widest;
}

}  // namespace espalier::planners
