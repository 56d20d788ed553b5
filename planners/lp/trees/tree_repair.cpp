#include "planners/lp/trees/tree_repair.h"

#include <algorithm>
#include <utility>

namespace espalier::planners {

namespace {

/// A tree of one root while it is repaired. Ranks are reached when they are connected with the root.
class TreeRepair {
 public:
  TreeRepair(const ResourceGraph& graph, std::vector<RankPath> paths, std::uint32_t root, bool inward)
      : graph_(graph),
        root_(root),
        inward_(inward),
        parent_(graph_.rank_count(), gone),
        path_(graph_.rank_count()),
        children_(graph_.rank_count()) {
    for (RankPath& path : paths) {
      const bool whole =
          path.from != gone && path.to != gone && std::ranges::find(path.edges, gone) == path.edges.end();
      if (whole) attach(inward ? path.from : path.to, inward ? path.to : path.from, std::move(path.edges));
    }
    reach(root);
  }

  bool run() {
    while (reached_.size() < parent_.size()) {
      if (!join_nearest()) return false;
    }
    return true;
  }

  [[nodiscard]] std::vector<std::uint32_t> edges() const {
    std::vector<std::uint32_t> edges;
    for (const std::uint32_t rank : reached_) edges.insert(edges.end(), path_[rank].begin(), path_[rank].end());
    return edges;
  }

 private:
  void attach(std::uint32_t child, std::uint32_t parent, std::vector<std::uint32_t> path) {
    parent_[child] = parent;
    path_[child] = std::move(path);
    children_[parent].push_back(child);
  }

  void reach(std::uint32_t rank) {
    std::size_t at = reached_.size();
    reached_.push_back(rank);
    for (; at < reached_.size(); ++at) {
      const std::vector<std::uint32_t>& children = children_[reached_[at]];
      reached_.insert(reached_.end(), children.begin(), children.end());
    }
  }

  /// A search through nodes that are not ranks from all reached ranks at once, those nearest to the root first.
  bool join_nearest() {
    std::vector<std::uint32_t> entering(graph_.node_ranks.size(), gone);
    std::vector<bool> is_seen(graph_.node_ranks.size(), false);
    std::vector<std::uint32_t> open;
    for (const std::uint32_t rank : reached_) {
      const std::uint32_t node = graph_.rank_nodes[rank];
      if (rank == root_ || !graph_.is_dead_end[node]) open.push_back(node);
      is_seen[node] = true;
    }
    std::uint32_t inner = gone;  // a rank that is not the top of what it hangs together with
    for (std::size_t at = 0; at < open.size(); ++at) {
      const std::uint32_t node = open[at];
      for (const std::uint32_t e : inward_ ? graph_.in_edges[node] : graph_.out_edges[node]) {
        const std::uint32_t far = inward_ ? graph_.edges[e].tail : graph_.edges[e].head;
        if (is_seen[far]) continue;
        is_seen[far] = true;
        entering[far] = e;
        const std::uint32_t rank = graph_.node_ranks[far];
        if (rank == ResourceGraph::no_rank) {
          open.push_back(far);
        } else if (parent_[rank] == gone) {
          join(rank, entering);
          return true;
        } else if (inner == gone) {
          inner = rank;
        }
      }
    }
    if (inner == gone) return false;
    std::erase(children_[parent_[inner]], inner);
    join(inner, entering);
    return true;
  }

  void join(std::uint32_t rank, const std::vector<std::uint32_t>& entering) {
    std::vector<std::uint32_t> path = path_from(graph_, entering, graph_.rank_nodes[rank], inward_);
    const std::uint32_t end = inward_ ? graph_.edges[path.back()].head : graph_.edges[path.front()].tail;
    attach(rank, graph_.node_ranks[end], std::move(path));
    reach(rank);
  }

  const ResourceGraph& graph_;
  std::uint32_t root_;
  bool inward_;
  std::vector<std::uint32_t> parent_;             ///< By rank; `gone` at a top.
  std::vector<std::vector<std::uint32_t>> path_;  ///< By rank: between it and its parent, in the data's direction.
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<std::uint32_t> reached_;  ///< Nearly in the order of their depth.
};

}  // namespace

std::optional<std::vector<std::uint32_t>> repair_tree(const ResourceGraph& graph, std::vector<RankPath> paths,
                                                      std::uint32_t root, bool inward) {
  TreeRepair repair(graph, std::move(paths), root, inward);
  if (!repair.run()) return std::nullopt;
  return repair.edges();
}

}  // namespace espalier::planners
