#include "planners/packing/improve/tree_balance.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <utility>

#include "planners/graph/parent_tree.h"
#include "planners/graph/path_search.h"

namespace espalier::planners {

namespace {

/// What an edge or a path costs: its price, and among equal prices what it does to evenness.
struct PathCost {
  __int128 price = 0;
  double evenness = 0;

  friend PathCost operator+(PathCost a, PathCost b) { return {a.price + b.price, a.evenness + b.evenness}; }
  friend auto operator<=>(const PathCost&, const PathCost&) = default;
};

/// A column as a tree; its paths go in the direction of the data.
ReparentedTree take_apart(const ResourceGraph& graph, const TreeGroup& group, const Column& column) {
  ParentTree tree = ParentTree::of_root(group.root, graph.rank_count(), 0);
  for (RankPath& path : split_paths(graph, column.edges)) {
    tree.add(group.inward ? path.from : path.to, group.inward ? path.to : path.from, std::move(path.edges));
  }
  return ReparentedTree(std::move(tree));
}

/// How well resources are used: what all uses cost.
class Evenness {
 public:
  Evenness(const OrbitGraph& orbits, std::span<const double> room)
      : orbits_(orbits), room_(room.begin(), room.end()), use_(room.size(), 0), step_(room.size(), 0) {}

  /// Uses every edge `times` more.
  void add(const std::vector<std::uint32_t>& path, std::int64_t times) {
    for (const std::uint32_t e : path) {
      add_edge(e, times);
      if (orbits_.graph.mirrored) add_edge(orbits_.graph.edges[e].mirror, times);
    }
  }
  /// Makes ready for `edge_cost`.
  void set_step(std::int64_t times) {
    for (std::size_t r = 0; r < use_.size(); ++r) {
      step_[r] = term(r, use_[r] + static_cast<double>(times)) - term(r, use_[r]);
    }
  }
  /// What the sum grows by when the edge is used as often as set_step says.
  [[nodiscard]] double edge_cost(std::uint32_t e) const {
    double cost = 0;
    for (const std::uint32_t resource : orbits_.graph.edges[e].resources) cost += step_[orbits_.resources.of[resource]];
    return cost;
  }

 private:
  void add_edge(std::uint32_t e, std::int64_t times) {
    for (const std::uint32_t resource : orbits_.graph.edges[e].resources) {
      use_[orbits_.resources.of[resource]] += static_cast<double>(times);
    }
  }
  [[nodiscard]] double term(std::size_t r, double use) const {
    if (room_[r] <= 0) return use * no_room;
    const double fullness = use / room_[r];
    const double square = fullness * fullness;
    return square * square * square;
  }

  static constexpr double no_room = 1e6;
  const OrbitGraph& orbits_;
  std::vector<double> room_;
  std::vector<double> use_;
  std::vector<double> step_;
};

/// Prices by edge, coarser where they are too large for sums of them to stay below 2^126.
std::vector<__int128> edge_prices(const OrbitGraph& orbits, std::span<const BigInteger> prices) {
  constexpr int coarse_bits = 60;  // what the largest price becomes where they are too large
  constexpr int exact_bits = 100;
  const BigInteger largest = std::max(BigInteger(1), *std::ranges::max_element(prices));
  std::vector<__int128> by_edge;
  for (const ResourceGraph::Edge& edge : orbits.graph.edges) {
    __int128& sum = by_edge.emplace_back(0);
    for (const std::uint32_t resource : edge.resources) {
      const BigInteger& price = prices[orbits.resources.of[resource]];
      const BigInteger fitting = (largest >> exact_bits) == 0 ? price : BigInteger((price << coarse_bits) / largest);
      sum += fitting.convert_to<__int128>();
    }
  }
  return by_edge;
}

/// What a tree's edges cost: the cheapest path to a rank from any that is not below it, no deeper than allowed.
class BalanceCost {
 public:
  BalanceCost(const OrbitGraph& orbits, std::span<const BigInteger> prices, std::span<const double> room)
      : graph_(orbits.graph), prices_(edge_prices(orbits, prices)), evenness_(orbits, room), search_(orbits.graph) {}

  /// Which tree is changed next, and how deep it may get.
  void turn_to(const TreeGroup& group, std::uint32_t max_depth) {
    group_ = &group;
    max_depth_ = max_depth;
  }
  void use(const ParentTree& /*tree*/, const std::vector<std::uint32_t>& path, int sign) {
    evenness_.add(path, sign * group_->copies);
  }
  std::optional<TreeEntry> choose(const ReparentedTree& reparented, std::uint32_t rank) {
    constexpr double min_gain = 1e-9;  // of evenness: below it is rounding
    const ParentTree& tree = reparented.tree();
    evenness_.set_step(graph_.mirrored ? 2 * group_->copies : group_->copies);
    const auto cost = [&](std::uint32_t e) { return PathCost{prices_[e], evenness_.edge_cost(e)}; };
    const bool towards = !group_->inward;
    search_.run(graph_.rank_nodes[rank], towards, false,
                [&](PathCost path, std::uint32_t e) { return path + cost(e); });
    PathCost least;
    for (const std::uint32_t e : tree.path[rank]) least = least + cost(e);
    least.evenness *= 1 - min_gain;
    std::vector<bool> is_below(graph_.rank_count(), false);
    std::uint32_t deepest = tree.depth[rank];
    reparented.for_each_below(rank, [&](std::uint32_t below) {
      is_below[below] = true;
      deepest = std::max(deepest, tree.depth[below]);
    });
    std::uint32_t best = rank;
    for (std::uint32_t u = 0; u < graph_.rank_count(); ++u) {
      const std::uint32_t node = graph_.rank_nodes[u];
      if (search_.edges()[node] == search_.no_edge || (u != group_->root && graph_.is_dead_end[node])) continue;
      if (is_below[u] || tree.depth[u] + 1 + deepest - tree.depth[rank] > max_depth_) continue;
      if (search_.distances()[node] >= least) continue;
      best = u;
      least = search_.distances()[node];
    }
    if (best == rank) return std::nullopt;
    return TreeEntry{best, path_from(graph_, search_.edges(), graph_.rank_nodes[best], towards)};
  }

 private:
  const ResourceGraph& graph_;
  std::vector<__int128> prices_;  ///< By edge.
  Evenness evenness_;
  PathSearch<PathCost> search_;
  const TreeGroup* group_ = nullptr;
  std::uint32_t max_depth_ = 0;
};

}  // namespace

std::vector<Column> balanced_trees(const OrbitGraph& orbits, const TreeOracle& oracle,
                                   std::span<const BigInteger> prices, std::vector<Column> columns,
                                   std::span<const double> room, std::uint32_t max_depth) {
  constexpr int max_passes = 6;
  BalanceCost cost(orbits, prices, room);
  std::vector<ReparentedTree> trees;
  const auto turn_to = [&](std::size_t t) {
    cost.turn_to(oracle.groups().groups[columns[t].group], std::max(max_depth, columns[t].height));
  };
  for (std::size_t t = 0; t < columns.size(); ++t) {
    turn_to(t);
    trees.push_back(take_apart(orbits.graph, oracle.groups().groups[columns[t].group], columns[t]));
    for (const auto& path : trees[t].tree().path) cost.use(trees[t].tree(), path, 1);
  }
  bool changed = true;
  for (int pass = 0; pass < max_passes && changed; ++pass) {
    changed = false;
    for (std::size_t t = 0; t < trees.size(); ++t) {
      turn_to(t);
      for (std::uint32_t rank = 0; rank < orbits.graph.rank_count(); ++rank) {
        if (rank != trees[t].tree().root()) changed = reparent(trees[t], rank, cost) || changed;
      }
    }
  }
  for (std::size_t t = 0; t < trees.size(); ++t) {
    std::vector<std::uint32_t> edges;
    for (const auto& path : trees[t].tree().path) edges.insert(edges.end(), path.begin(), path.end());
    columns[t] = oracle.column(columns[t].group, std::move(edges));
  }
  return columns;
}

}  // namespace espalier::planners
