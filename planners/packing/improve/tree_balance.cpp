#include "planners/packing/improve/tree_balance.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace espalier {

namespace {

/// What an edge or a path costs: its price, and among equal prices what it does to evenness.
struct PathCost {
  __int128 price = 0;
  double evenness = 0;

  friend PathCost operator+(PathCost a, PathCost b) { return {a.price + b.price, a.evenness + b.evenness}; }
  friend auto operator<=>(const PathCost&, const PathCost&) = default;
};

constexpr PathCost unreached = {static_cast<__int128>(1) << 126, 0};

/// A spanning tree by what enters each rank.
struct GrownTree {
  std::uint32_t group = 0;
  std::uint32_t root = 0;
  bool inward = false;
  std::int64_t copies = 1;
  std::vector<std::uint32_t> parent;
  std::vector<std::vector<std::uint32_t>> path;  ///< By rank: edges between it and its parent, the way the data goes.
  std::uint32_t least_height = 1;

  /// Edges between each rank and the root.
  [[nodiscard]] std::vector<std::uint32_t> depths() const {
    constexpr std::uint32_t unknown = UINT32_MAX;
    std::vector<std::uint32_t> depth(parent.size(), unknown);
    depth[root] = 0;
    std::vector<std::uint32_t> way;
    for (std::uint32_t start = 0; start < parent.size(); ++start) {
      std::uint32_t v = start;
      for (; depth[v] == unknown; v = parent[v]) way.push_back(v);
      for (std::uint32_t reached = depth[v]; !way.empty(); way.pop_back()) depth[way.back()] = ++reached;
    }
    return depth;
  }
};

GrownTree take_apart(const ResourceGraph& graph, const TreeGroup& group, const Column& column) {
  GrownTree tree;
  tree.group = column.group;
  tree.root = group.root;
  tree.inward = group.inward;
  tree.copies = group.copies;
  tree.parent.assign(graph.rank_count(), group.root);
  tree.path.resize(graph.rank_count());
  tree.least_height = column.least_height;
  std::vector<std::uint32_t> path;
  for (const std::uint32_t e : column.edges) {
    path.push_back(e);
    const std::uint32_t end = graph.node_ranks[graph.edges[e].head];
    if (end == ResourceGraph::no_rank) continue;
    const std::uint32_t begin = graph.node_ranks[graph.edges[path.front()].tail];
    const std::uint32_t child = group.inward ? begin : end;
    tree.parent[child] = group.inward ? end : begin;
    tree.path[child] = std::exchange(path, {});
  }
  return tree;
}

/// The ranks at and below one, and how far the lowest is below it.
struct Below {
  std::vector<bool> is_below;
  std::uint32_t height = 0;
};

Below find_below(const GrownTree& tree, const std::vector<std::uint32_t>& depth, std::uint32_t top) {
  Below below{std::vector<bool>(tree.parent.size(), false), 0};
  std::vector<std::uint8_t> known(tree.parent.size(), 0);  // 1: not below, 2: below
  known[top] = 2;
  if (top != tree.root) known[tree.root] = 1;
  std::vector<std::uint32_t> way;
  for (std::uint32_t start = 0; start < tree.parent.size(); ++start) {
    std::uint32_t v = start;
    for (; known[v] == 0; v = tree.parent[v]) way.push_back(v);
    for (; !way.empty(); way.pop_back()) known[way.back()] = known[v];
    if (known[start] != 2) continue;
    below.is_below[start] = true;
    below.height = std::max(below.height, depth[start] - depth[top]);
  }
  return below;
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

/// Cheapest paths between one rank and all others through nodes that are not ranks, found from their common end.
class PathSearch {
 public:
  PathSearch(const ResourceGraph& graph, const std::vector<std::vector<std::uint32_t>>& in_edges)
      : graph_(graph), in_edges_(in_edges), distance_(in_edges.size(), unreached), next_edge_(in_edges.size(), 0) {}

  /// `towards`: paths end at `rank`; else they begin there.
  template <class Cost>
  void run(std::uint32_t rank, bool towards, Cost cost) {
    for (const std::uint32_t node : reached_) distance_[node] = unreached;
    reached_.clear();
    const std::uint32_t start = graph_.rank_nodes[rank];
    using State = std::pair<PathCost, std::uint32_t>;
    std::priority_queue<State, std::vector<State>, std::greater<>> open;
    distance_[start] = {};
    reached_.push_back(start);
    open.emplace(PathCost{}, start);
    while (!open.empty()) {
      const auto [distance, node] = open.top();
      open.pop();
      if (distance > distance_[node]) continue;
      if (node != start && graph_.node_ranks[node] != ResourceGraph::no_rank) continue;
      for (const std::uint32_t e : towards ? in_edges_[node] : graph_.out_edges[node]) {
        const std::uint32_t other = towards ? graph_.edges[e].tail : graph_.edges[e].head;
        const PathCost reached = distance + cost(e);
        if (reached >= distance_[other]) continue;
        if (distance_[other] == unreached) reached_.push_back(other);
        distance_[other] = reached;
        next_edge_[other] = e;
        open.emplace(reached, other);
      }
    }
  }
  [[nodiscard]] PathCost distance(std::uint32_t rank) const { return distance_[graph_.rank_nodes[rank]]; }
  /// The path between `rank` and the start of the last run, in the direction of the data.
  [[nodiscard]] std::vector<std::uint32_t> path(std::uint32_t rank, std::uint32_t start, bool towards) const {
    std::vector<std::uint32_t> edges;
    for (std::uint32_t node = graph_.rank_nodes[rank]; node != graph_.rank_nodes[start];) {
      const std::uint32_t e = next_edge_[node];
      edges.push_back(e);
      node = towards ? graph_.edges[e].head : graph_.edges[e].tail;
    }
    if (!towards) std::reverse(edges.begin(), edges.end());
    return edges;
  }

 private:
  const ResourceGraph& graph_;
  const std::vector<std::vector<std::uint32_t>>& in_edges_;
  std::vector<PathCost> distance_;
  std::vector<std::uint32_t> next_edge_;
  std::vector<std::uint32_t> reached_;
};

Column put_together(const OrbitGraph& orbits, const GrownTree& tree) {
  const ResourceGraph& graph = orbits.graph;
  Column column;
  column.group = tree.group;
  column.least_height = tree.least_height;
  const std::vector<std::uint32_t> depth = tree.depths();
  column.height = *std::max_element(depth.begin(), depth.end());
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  for (std::uint32_t v = 0; v < tree.parent.size(); ++v) {
    if (v == tree.root) continue;
    column.edges.insert(column.edges.end(), tree.path[v].begin(), tree.path[v].end());
    for (const std::uint32_t e : tree.path[v]) {
      ++uses[e];
      if (graph.mirrored) ++uses[graph.edges[e].mirror];
    }
  }
  column.loads = orbit_loads(orbits, uses, tree.copies);
  return column;
}

}  // namespace

TreeBalancer::TreeBalancer(const OrbitGraph& orbits, const TreeGroups& groups, std::span<const BigInteger> prices)
    : orbits_(orbits), groups_(groups), in_edges_(orbits.graph.out_edges.size()) {
  constexpr int coarse_bits = 60;  // what the largest price becomes where they are too large
  constexpr int exact_bits = 100;  // so that sums stay below 2^126
  const ResourceGraph& graph = orbits.graph;
  BigInteger largest = 1;
  for (const BigInteger& price : prices) largest = std::max(largest, price);
  base_price_.assign(graph.edges.size(), 0);
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    in_edges_[graph.edges[e].head].push_back(e);
    for (const std::uint32_t resource : graph.edges[e].resources) {
      const BigInteger& price = prices[orbits.resources.of[resource]];
      const BigInteger fitting = (largest >> exact_bits) == 0 ? price : BigInteger((price << coarse_bits) / largest);
      base_price_[e] += fitting.convert_to<__int128>();
    }
  }
}

std::vector<Column> TreeBalancer::balanced(std::vector<Column> columns, std::span<const double> room,
                                           std::uint32_t most_height) const {
  constexpr int most_passes = 6;
  constexpr double least_gain = 1e-9;  // of evenness: below it is rounding
  const ResourceGraph& graph = orbits_.graph;
  Evenness evenness(orbits_, room);
  std::vector<GrownTree> trees;
  std::vector<std::uint32_t> heights;
  for (const Column& column : columns) {
    trees.push_back(take_apart(graph, groups_.groups[column.group], column));
    heights.push_back(std::max(most_height, column.height));
    for (const auto& path : trees.back().path) evenness.add(path, trees.back().copies);
  }
  PathSearch search(graph, in_edges_);
  const auto cost = [&](std::uint32_t e) { return PathCost{base_price_[e], evenness.edge_cost(e)}; };
  for (int pass = 0; pass < most_passes; ++pass) {
    bool changed = false;
    for (std::size_t t = 0; t < trees.size(); ++t) {
      GrownTree& tree = trees[t];
      std::vector<std::uint32_t> depth = tree.depths();
      for (std::uint32_t v = 0; v < graph.rank_count(); ++v) {
        if (v == tree.root) continue;
        evenness.add(tree.path[v], -tree.copies);
        evenness.set_step(graph.mirrored ? 2 * tree.copies : tree.copies);
        search.run(v, !tree.inward, cost);
        PathCost least;
        for (const std::uint32_t e : tree.path[v]) least = least + cost(e);
        least.evenness *= 1 - least_gain;
        const Below below = find_below(tree, depth, v);
        std::uint32_t best = v;
        for (std::uint32_t u = 0; u < graph.rank_count(); ++u) {
          if (u != tree.root && graph.is_dead_end[graph.rank_nodes[u]]) continue;
          if (below.is_below[u] || depth[u] + 1 + below.height > heights[t]) continue;
          if (search.distance(u) >= least) continue;
          best = u;
          least = search.distance(u);
        }
        if (best != v) {
          tree.parent[v] = best;
          tree.path[v] = search.path(best, v, !tree.inward);
          depth = tree.depths();
          changed = true;
        }
        evenness.add(tree.path[v], tree.copies);
      }
    }
    if (!changed) break;
  }
  for (std::size_t t = 0; t < trees.size(); ++t) columns[t] = put_together(orbits_, trees[t]);
  return columns;
}

}  // namespace espalier
