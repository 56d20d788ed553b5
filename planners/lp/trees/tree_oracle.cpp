#include "planners/lp/trees/tree_oracle.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "planners/graph/path_search.h"
#include "planners/lp/trees/arborescence.h"

namespace espalier::planners {

namespace {

/// Shortest paths between all ranks through nodes that are not ranks.
template <class Price>
struct RankDistances {
  std::vector<ShortestPaths<Price>> from;  ///< By orbit of ranks, from its first one.
  std::vector<Price> forward;  ///< n x n: from the row's rank to the column's; `far` where there is no path.
  Price far;                   ///< Dearer than any tree.
};

template <class Price>
RankDistances<Price> rank_distances(const OrbitGraph& orbits, std::span<const Price> prices) {
  const ResourceGraph& graph = orbits.graph;
  const std::vector<Price> lengths = edge_lengths<Price>(orbits, prices);
  const std::uint32_t n = graph.rank_count();
  RankDistances<Price> distances{{}, {}, (std::accumulate(lengths.begin(), lengths.end(), Price(0)) + 1) * n};
  for (const std::uint32_t first : orbits.ranks.first) {
    distances.from.emplace_back(graph, lengths, graph.rank_nodes[first], false);
  }
  distances.forward.assign(std::size_t{n} * n, distances.far);
  for (std::uint32_t u = 0; u < n; ++u) {
    const ShortestPaths<Price>& from = distances.from[orbits.ranks.of[u]];
    const std::uint32_t first = orbits.ranks.first[orbits.ranks.of[u]];
    const Automorphism automorphism = orbits.automorphisms.at(orbits.automorphism_to[u]);
    Price* row = &distances.forward[std::size_t{u} * n];
    for (std::uint32_t v = 0; v < n; ++v) {
      const std::uint32_t node = graph.rank_nodes[v];
      if (v == first || !from.has_path(node)) continue;
      row[orbits.rank_image(automorphism, v)] = from.distance(node);
    }
  }
  return distances;
}

template <class Price>
std::vector<Price> transposed(const std::vector<Price>& matrix, std::uint32_t n) {
  std::vector<Price> result(matrix.size());
  for (std::uint32_t u = 0; u < n; ++u) {
    for (std::uint32_t v = 0; v < n; ++v) result[std::size_t{v} * n + u] = matrix[std::size_t{u} * n + v];
  }
  return result;
}

/// What every edge of a tree of the group costs, from parent to child: ranks that must not relay have children only as
/// its root.
template <class Price>
std::vector<Price> tree_costs(const ResourceGraph& graph, const RankDistances<Price>& distances,
                              const TreeGroup& group) {
  const std::uint32_t n = graph.rank_count();
  std::vector<Price> cost = group.inward ? transposed(distances.forward, n) : distances.forward;
  for (std::uint32_t u = 0; u < n; ++u) {
    if (u == group.root || !graph.is_dead_end[graph.rank_nodes[u]]) continue;
    std::fill_n(cost.begin() + static_cast<std::ptrdiff_t>(std::size_t{u} * n), n, distances.far);
  }
  return cost;
}

/// The paths from rank to rank, as images of those from the first rank of an orbit.
template <class Price>
class PathFinder {
 public:
  PathFinder(const OrbitGraph& orbits, const RankDistances<Price>& distances)
      : orbits_(orbits), distances_(distances), from_(UINT32_MAX), original_(orbits.graph.rank_count()) {}

  /// Appends the edges of the path.
  void append(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& edges) {
    const ResourceGraph& graph = orbits_.graph;
    if (from != from_) turn_to(from);
    const auto& entering_edge = distances_.from[orbits_.ranks.of[from]].entering_edge();
    for (const std::uint32_t e : path_from(graph, entering_edge, graph.rank_nodes[original_[to]], false)) {
      edges.push_back(orbits_.edge_image(automorphism_, e));
    }
  }

 private:
  void turn_to(std::uint32_t from) {
    from_ = from;
    automorphism_ = orbits_.automorphisms.at(orbits_.automorphism_to[from]);
    for (std::uint32_t v = 0; v < original_.size(); ++v) original_[orbits_.rank_image(automorphism_, v)] = v;
  }

  const OrbitGraph& orbits_;
  const RankDistances<Price>& distances_;
  std::uint32_t from_;
  Automorphism automorphism_;
  std::vector<std::uint32_t> original_;  ///< By rank: which one the automorphism takes there.
};

/// The most edges between the root and a rank.
std::uint32_t height_of(const std::vector<std::uint32_t>& parent, std::uint32_t root) {
  std::vector<std::uint32_t> depth(parent.size(), UINT32_MAX);
  depth[root] = 0;
  std::uint32_t deepest = 0;
  std::vector<std::uint32_t> climbed;
  for (std::uint32_t start = 0; start < parent.size(); ++start) {
    std::uint32_t v = start;
    for (; depth[v] == UINT32_MAX; v = parent[v]) climbed.push_back(v);
    for (std::uint32_t reached = depth[v]; !climbed.empty(); climbed.pop_back()) depth[climbed.back()] = ++reached;
    deepest = std::max(deepest, depth[start]);
  }
  return deepest;
}

Column column_over(const OrbitGraph& orbits, std::uint32_t number, const TreeGroup& group,
                   const std::vector<std::uint32_t>& hops, const std::vector<std::uint32_t>& parent,
                   std::vector<std::uint32_t> edges) {
  const ResourceGraph& graph = orbits.graph;
  Column column;
  column.group = number;
  column.edges = std::move(edges);
  std::vector<std::int64_t> uses(graph.edges.size(), 0);
  for (const std::uint32_t e : column.edges) {
    ++uses[e];
    if (graph.mirrored) ++uses[graph.edges[e].mirror];
  }
  column.loads = orbit_loads(orbits, uses, group.copies);
  column.height = height_of(parent, group.root);
  column.min_height = *std::max_element(hops.begin(), hops.end());
  return column;
}

template <class Price>
Column tree_column(const OrbitGraph& orbits, const RankDistances<Price>& distances, std::uint32_t number,
                   const TreeGroup& group, const std::vector<std::uint32_t>& hops,
                   const std::vector<std::uint32_t>& parent) {
  const ResourceGraph& graph = orbits.graph;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;  // source and target of each of the tree's edges
  for (std::uint32_t v = 0; v < graph.rank_count(); ++v) {
    if (v != group.root) ends.emplace_back(group.inward ? v : parent[v], group.inward ? parent[v] : v);
  }
  std::sort(ends.begin(), ends.end());
  std::vector<std::uint32_t> edges;
  PathFinder<Price> paths(orbits, distances);
  for (const auto& [source, target] : ends) paths.append(source, target, edges);
  return column_over(orbits, number, group, hops, parent, std::move(edges));
}

template <class Price>
PricedColumns<Price> cheapest_trees(const OrbitGraph& orbits, const TreeGroups& groups,
                                    const std::vector<std::vector<std::uint32_t>>& hops,
                                    std::span<const Price> prices) {
  const RankDistances<Price> distances = rank_distances(orbits, prices);
  const std::uint32_t n = orbits.graph.rank_count();
  const bool inward = !orbits.graph.has_dead_ends &&
                      std::any_of(groups.groups.begin(), groups.groups.end(), [](auto& group) { return group.inward; });
  const std::vector<Price> backward = inward ? transposed(distances.forward, n) : std::vector<Price>();
  PricedColumns<Price> priced;
  for (std::uint32_t g = 0; g < groups.groups.size(); ++g) {
    const TreeGroup& group = groups.groups[g];
    const auto parent = orbits.graph.has_dead_ends
                            ? cheapest_arborescence(tree_costs(orbits.graph, distances, group), n, group.root)
                            : cheapest_arborescence(group.inward ? backward : distances.forward, n, group.root);
    priced.columns.push_back(tree_column(orbits, distances, g, group, hops[g], parent));
    priced.costs.push_back(cost_of(priced.columns.back(), prices));
  }
  return priced;
}

/// What the edges from rank to rank cost on average.
double mean_edge(const RankDistances<double>& distances) {
  double sum = 0;
  std::size_t count = 0;
  for (const double cost : distances.forward) {
    if (cost == distances.far) continue;
    sum += cost;
    ++count;
  }
  return sum / static_cast<double>(std::max<std::size_t>(count, 1));
}

/// A tree grown from the root, each time by the edge that costs least with `unit` for every step that its end is deeper
/// than it has to be; no deeper than `max_depth`, nothing when that leaves a rank out. Cost: O(n^2).
std::optional<std::vector<std::uint32_t>> grow_tree(std::span<const double> cost, double far, std::uint32_t root,
                                                    const std::vector<std::uint32_t>& hops, double unit,
                                                    std::uint32_t max_depth) {
  const auto n = static_cast<std::uint32_t>(hops.size());
  std::vector<std::uint32_t> parent(n, root);
  std::vector<std::uint32_t> depth(n, UINT32_MAX);
  std::vector<double> key(n, std::numeric_limits<double>::infinity());
  const auto reach_from = [&](std::uint32_t u) {
    if (depth[u] == max_depth) return;
    for (std::uint32_t v = 0; v < n; ++v) {
      if (depth[v] != UINT32_MAX || cost[std::size_t{u} * n + v] == far) continue;
      const double late = unit * (static_cast<double>(depth[u]) + 1 - hops[v]);
      if (cost[std::size_t{u} * n + v] + late >= key[v]) continue;
      key[v] = cost[std::size_t{u} * n + v] + late;
      parent[v] = u;
    }
  };
  depth[root] = 0;
  reach_from(root);
  for (std::uint32_t added = 1; added < n; ++added) {
    std::uint32_t next = root;
    for (std::uint32_t v = 0; v < n; ++v) {
      if (depth[v] == UINT32_MAX && (next == root || key[v] < key[next])) next = v;
    }
    if (key[next] == std::numeric_limits<double>::infinity()) return std::nullopt;
    depth[next] = depth[parent[next]] + 1;
    reach_from(next);
  }
  return parent;
}

}  // namespace

TreeGroups sharded_groups(const OrbitGraph& orbits, bool inward, std::span<const std::int64_t> shares) {
  TreeGroups groups{{}, Sharing::equal};
  for (std::uint32_t orbit = 0; orbit < orbits.ranks.count(); ++orbit) {
    const std::uint32_t root = orbits.ranks.first[orbit];
    const std::int64_t share = shares.empty() ? 1 : shares[root];
    if (share == 0) continue;
    const auto family = static_cast<std::uint32_t>(groups.groups.size());
    groups.groups.push_back({root, inward, family, share * orbits.ranks.size[orbit], share});
  }
  return groups;
}

TreeGroups single_root_group(std::uint32_t root, bool inward) { return {{{root, inward, 0, 1, 1}}, Sharing::equal}; }

TreeGroups all_reduce_groups(const OrbitGraph& orbits) {
  if (orbits.graph.mirrored) return {{{orbits.graph.first_relaying, false, 0, 1, 1}}, Sharing::free};
  TreeGroups groups{{}, Sharing::free};
  std::uint32_t family = 0;
  for (const std::uint32_t root : orbits.ranks.first) {
    if (orbits.graph.is_dead_end[orbits.graph.rank_nodes[root]]) continue;
    groups.groups.push_back({root, false, family, 1, 1});
    groups.groups.push_back({root, true, family, 1, 1});
    ++family;
  }
  return groups;
}

TreeOracle::TreeOracle(const OrbitGraph& orbits, TreeGroups groups, std::uint32_t max_height)
    : orbits_(orbits), groups_(std::move(groups)), max_height_(max_height) {
  const std::vector<double> free(orbits.resources.count(), 0.0);
  const RankDistances<double> distances = rank_distances<double>(orbits, free);
  const std::uint32_t n = orbits.graph.rank_count();
  for (const TreeGroup& group : groups_.groups) {
    std::vector<std::uint32_t>& hops = hops_.emplace_back(n, UINT32_MAX);
    std::vector<std::uint32_t> open = {group.root};
    hops[group.root] = 0;
    for (std::size_t at = 0; at < open.size() && open.size() < n; ++at) {
      const std::uint32_t u = open[at];
      if (u != group.root && orbits.graph.is_dead_end[orbits.graph.rank_nodes[u]]) continue;
      for (std::uint32_t v = 0; v < n; ++v) {
        const std::size_t entry = group.inward ? std::size_t{v} * n + u : std::size_t{u} * n + v;
        if (hops[v] != UINT32_MAX || distances.forward[entry] == distances.far) continue;
        hops[v] = hops[u] + 1;
        open.push_back(v);
      }
    }
  }
}

std::uint32_t TreeOracle::min_height() const {
  std::uint32_t least = 0;
  for (const auto& hops : hops_) least = std::max(least, *std::max_element(hops.begin(), hops.end()));
  return least;
}

Column TreeOracle::column(std::uint32_t number, std::vector<std::uint32_t> edges) const {
  const ResourceGraph& graph = orbits_.graph;
  const TreeGroup& group = groups_.groups[number];
  std::vector<std::uint32_t> parent(graph.rank_count(), group.root);
  for (const RankPath& path : split_paths(graph, edges)) {
    parent[group.inward ? path.from : path.to] = group.inward ? path.to : path.from;
  }
  return column_over(orbits_, number, group, hops_[number], parent, std::move(edges));
}

MasterProgram TreeOracle::program() const {
  MasterProgram program;
  program.capacity = orbits_.capacity;
  program.sharing = groups_.sharing;
  for (const TreeGroup& group : groups_.groups) {
    program.family.push_back(group.family);
    program.family_count = std::max(program.family_count, group.family + 1);
  }
  return program;
}

PricedColumns<double> TreeOracle::cheapest(std::span<const double> prices) const {
  return cheapest_trees(orbits_, groups_, hops_, prices);
}

PricedColumns<BigInteger> TreeOracle::cheapest(std::span<const BigInteger> prices) const {
  // Whole prices are mostly small: then 64 bits hold the cost of any tree, and are much faster.
  const std::vector<BigInteger> lengths = edge_lengths(orbits_, prices);
  const BigInteger all = std::accumulate(lengths.begin(), lengths.end(), BigInteger(1));
  if (((all * orbits_.graph.rank_count() * orbits_.graph.rank_count()) >> 60U) != 0) {
    return cheapest_trees(orbits_, groups_, hops_, prices);
  }
  std::vector<std::int64_t> small;
  for (const BigInteger& price : prices) small.push_back(price.convert_to<std::int64_t>());
  PricedColumns<std::int64_t> priced = cheapest_trees<std::int64_t>(orbits_, groups_, hops_, small);
  return {std::move(priced.columns), {priced.costs.begin(), priced.costs.end()}};
}

PricedColumns<double> TreeOracle::shallow(std::span<const double> prices, double weight) const {
  const RankDistances<double> distances = rank_distances(orbits_, prices);
  const std::uint32_t n = orbits_.graph.rank_count();
  const double unit = weight * mean_edge(distances);
  PricedColumns<double> priced;
  const auto add = [&](std::uint32_t g, const std::vector<std::uint32_t>& parent) {
    priced.columns.push_back(tree_column(orbits_, distances, g, groups_.groups[g], hops_[g], parent));
    priced.costs.push_back(cost_of<double>(priced.columns.back(), prices));
  };
  for (std::uint32_t g = 0; g < groups_.groups.size(); ++g) {
    const TreeGroup& group = groups_.groups[g];
    std::vector<double> cost = tree_costs(orbits_.graph, distances, group);
    const std::uint32_t eccentricity = *std::max_element(hops_[g].begin(), hops_[g].end());
    const std::uint32_t loose = eccentricity + (weight < 1 ? eccentricity : 0);
    for (const std::uint32_t max_height : {loose, max_height_}) {
      if (max_height == 0) continue;
      const auto grown = grow_tree(cost, distances.far, group.root, hops_[g], unit, max_height);
      if (grown) add(g, *grown);
    }
    for (std::uint32_t u = 0; u < n; ++u) {
      for (std::uint32_t v = 0; v < n; ++v) {
        const std::uint32_t reached = hops_[g][u] + 1;
        if (reached > hops_[g][v]) cost[std::size_t{u} * n + v] += unit * (reached - hops_[g][v]);
      }
    }
    add(g, cheapest_arborescence(cost, n, group.root));
  }
  return priced;
}

}  // namespace espalier::planners
