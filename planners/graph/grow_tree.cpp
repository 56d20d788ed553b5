#include "planners/graph/grow_tree.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// Dijkstra's search, but that every rank that is reached becomes one more start. A node that is reached from a nearer
/// start later is open again.
class TreeGrowth {
 public:
  TreeGrowth(const ResourceGraph& graph, bool inward, std::span<const double> lengths)
      : graph_(graph),
        inward_(inward),
        lengths_(lengths),
        distance_(graph.out_edges.size(), std::numeric_limits<double>::infinity()),
        edge_(graph.out_edges.size(), UINT32_MAX) {}

  ParentTree run(std::uint32_t root) {
    ParentTree tree = ParentTree::of_root(root, graph_.rank_count(), 1);
    start_at(graph_.rank_nodes[root]);
    while (!open_.empty()) {
      const auto [distance, node] = open_.top();
      open_.pop();
      if (distance != distance_[node]) continue;
      const std::uint32_t rank = graph_.node_ranks[node];
      if (rank == ResourceGraph::no_rank) {
        extend_from(node);
        continue;
      }
      std::vector<std::uint32_t> path = path_from(graph_, edge_, node, inward_);
      const ResourceGraph::Edge& last = graph_.edges[inward_ ? path.back() : path.front()];
      const std::uint32_t parent = graph_.node_ranks[inward_ ? last.head : last.tail];
      tree.add(rank, parent, std::move(path));
      if (graph_.is_dead_end[node]) {
        distance_[node] = spanned;
      } else {
        start_at(node);
      }
    }
    ESPALIER_CHECK(tree.members.size() == graph_.rank_count(), "a tree grows to all ranks");
    return tree;
  }

 private:
  void start_at(std::uint32_t node) {
    distance_[node] = 0;
    extend_from(node);
    distance_[node] = spanned;
  }
  void extend_from(std::uint32_t node) {
    for (const std::uint32_t e : inward_ ? graph_.in_edges[node] : graph_.out_edges[node]) {
      const std::uint32_t other = inward_ ? graph_.edges[e].tail : graph_.edges[e].head;
      const double distance = distance_[node] + lengths_[e];
      if (distance >= distance_[other]) continue;
      distance_[other] = distance;
      edge_[other] = e;
      open_.emplace(distance, other);
    }
  }

  static constexpr double spanned = -1;  // no path is shorter

  using State = std::pair<double, std::uint32_t>;
  const ResourceGraph& graph_;
  bool inward_;
  std::span<const double> lengths_;
  std::vector<double> distance_;
  std::vector<std::uint32_t> edge_;  ///< By node: the one next to it on its path.
  std::priority_queue<State, std::vector<State>, std::greater<>> open_;
};

}  // namespace

ParentTree grow_tree(const ResourceGraph& graph, std::uint32_t root, bool inward, std::span<const double> lengths) {
  return TreeGrowth(graph, inward, lengths).run(root);
}

}  // namespace espalier::planners
