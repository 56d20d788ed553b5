#include "planners/tree/edge_forests.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace espalier::planners {

namespace {

constexpr std::uint32_t no_edge = std::numeric_limits<std::uint32_t>::max();

class Forests {
 public:
  Forests(std::size_t vertices, std::span<const PlainEdge> edges, std::span<const std::uint32_t> roots)
      : vertices_(vertices),
        edges_(edges),
        roots_(roots),
        tree_of_(edges.size(), no_edge),
        at_(vertices),
        size_(roots.size(), 0),
        full_(vertices) {
    std::iota(full_.begin(), full_.end(), 0);
    for (std::uint32_t i = 0; i < edges.size(); ++i) {
      at_[edges[i].a].push_back(i);
      at_[edges[i].b].push_back(i);
    }
  }

  std::vector<std::vector<std::uint32_t>> run() {
    grow();
    for (std::uint32_t edge = 0; edge < edges_.size() && !complete(); ++edge) {
      if (tree_of_[edge] == no_edge && !is_inside_full(edge)) insert(edge);
    }
    if (!complete()) return {};
    std::vector<std::vector<std::uint32_t>> trees(roots_.size());
    for (std::uint32_t edge = 0; edge < edges_.size(); ++edge) {
      if (tree_of_[edge] != no_edge) trees[tree_of_[edge]].push_back(edge);
    }
    return trees;
  }

 private:
  [[nodiscard]] bool complete() const {
    return std::all_of(size_.begin(), size_.end(), [&](std::size_t size) { return size + 1 == vertices_; });
  }

  [[nodiscard]] std::uint32_t other_end(std::uint32_t edge, std::uint32_t vertex) const {
    return edges_[edge].a == vertex ? edges_[edge].b : edges_[edge].a;
  }

  void put(std::uint32_t edge, std::uint32_t tree) {
    tree_of_[edge] = tree;
    ++size_[tree];
  }

  /// Every tree in turn takes one free edge at the vertex it reached first.
  void grow() {
    struct Growth {
      std::vector<std::uint32_t> reached;
      std::vector<bool> has;
      std::size_t oldest = 0;
    };
    std::vector<Growth> growths;
    for (const std::uint32_t root : roots_) {
      growths.push_back({{root}, std::vector<bool>(vertices_, false), 0});
      growths.back().has[root] = true;
    }
    for (bool grew = true; grew;) {
      grew = false;
      for (std::uint32_t tree = 0; tree < roots_.size(); ++tree) {
        Growth& growth = growths[tree];
        std::uint32_t taken = no_edge;
        for (; growth.oldest < growth.reached.size() && taken == no_edge;) {
          const std::uint32_t vertex = growth.reached[growth.oldest];
          for (const std::uint32_t edge : at_[vertex]) {
            if (tree_of_[edge] != no_edge || growth.has[other_end(edge, vertex)]) continue;
            taken = edge;
            growth.has[other_end(edge, vertex)] = true;
            growth.reached.push_back(other_end(edge, vertex));
            break;
          }
          if (taken == no_edge) ++growth.oldest;
        }
        if (taken == no_edge) continue;
        put(taken, tree);
        grew = true;
      }
    }
  }

  /// Shortest chain of exchanges that makes room for an edge: it joins a tree, the tree's edge on the cycle that closes
  /// moves on to another tree, and so on until one closes no cycle.
  void insert(std::uint32_t edge) {
    std::vector<std::uint32_t> cause(edges_.size(), no_edge);
    std::vector<std::uint32_t> queue{edge};
    cause[edge] = edge;
    for (std::size_t next = 0; next < queue.size(); ++next) {
      const std::uint32_t moving = queue[next];
      for (std::uint32_t tree = 0; tree < roots_.size(); ++tree) {
        if (tree == tree_of_[moving]) continue;
        const std::vector<std::uint32_t> path = path_in(tree, edges_[moving]);
        if (path.empty()) {
          settle(moving, tree, cause);
          return;
        }
        for (const std::uint32_t on_cycle : path) {
          if (cause[on_cycle] != no_edge) continue;
          cause[on_cycle] = moving;
          queue.push_back(on_cycle);
        }
      }
    }
    for (const std::uint32_t moved : queue) join_full(edges_[moved]);
  }

  // Where no chain makes room, every tree spans the ends of all edges that chains lead to: no edge between two of these
  // vertices ever finds room. Sets of such vertices that meet are one (J. Roskind, R. E. Tarjan, "A note on finding
  // minimum-cost edge-disjoint spanning trees", Mathematics of Operations Research 10, 1985).

  [[nodiscard]] std::uint32_t full_set_of(std::uint32_t vertex) {
    while (full_[vertex] != vertex) vertex = full_[vertex] = full_[full_[vertex]];
    return vertex;
  }
  void join_full(const PlainEdge& edge) { full_[full_set_of(edge.a)] = full_set_of(edge.b); }
  [[nodiscard]] bool is_inside_full(std::uint32_t edge) {
    return full_set_of(edges_[edge].a) == full_set_of(edges_[edge].b);
  }

  void settle(std::uint32_t moving, std::uint32_t tree, const std::vector<std::uint32_t>& cause) {
    ++size_[tree];
    while (true) {
      const std::uint32_t left = tree_of_[moving];
      tree_of_[moving] = tree;
      if (cause[moving] == moving) return;
      tree = left;
      moving = cause[moving];
    }
  }

  /// The tree's edges between the ends of an edge; empty when the tree does not join them.
  [[nodiscard]] std::vector<std::uint32_t> path_in(std::uint32_t tree, const PlainEdge& ends) const {
    std::vector<std::uint32_t> entered(vertices_, no_edge);
    std::vector<std::uint32_t> queue{ends.a};
    for (std::size_t next = 0; next < queue.size() && entered[ends.b] == no_edge; ++next) {
      for (const std::uint32_t edge : at_[queue[next]]) {
        const std::uint32_t vertex = other_end(edge, queue[next]);
        if (tree_of_[edge] != tree || vertex == ends.a || entered[vertex] != no_edge) continue;
        entered[vertex] = edge;
        queue.push_back(vertex);
      }
    }
    std::vector<std::uint32_t> path;
    if (entered[ends.b] == no_edge) return path;
    for (std::uint32_t vertex = ends.b; vertex != ends.a; vertex = other_end(path.back(), vertex)) {
      path.push_back(entered[vertex]);
    }
    return path;
  }

  std::size_t vertices_;
  std::span<const PlainEdge> edges_;
  std::span<const std::uint32_t> roots_;
  std::vector<std::uint32_t> tree_of_;  ///< By edge.
  std::vector<std::vector<std::uint32_t>> at_;
  std::vector<std::size_t> size_;    ///< Edges per tree.
  std::vector<std::uint32_t> full_;  ///< By vertex: another one of its set of vertices that all trees span.
};

}  // namespace

std::vector<std::vector<std::uint32_t>> split_into_trees(std::size_t vertices, std::span<const PlainEdge> edges,
                                                         std::span<const std::uint32_t> roots) {
  return Forests(vertices, edges, roots).run();
}

}  // namespace espalier::planners
