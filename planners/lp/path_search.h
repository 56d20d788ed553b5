#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "planners/lp/resource_graph.h"

namespace espalier::planners {

/// Shortest paths from one node, or to it, by any measure that grows along a path; a search is run again and again and
/// only clears what the last run has reached.
///
/// Source: E. W. Dijkstra, "A note on two problems in connexion with graphs", Numerische Mathematik 1 (1959).
template <class Length>
class PathSearch {
 public:
  static constexpr std::uint32_t no_edge = UINT32_MAX;

  /// Requires: a graph that outlives the search.
  explicit PathSearch(const ResourceGraph& graph)
      : graph_(graph), distance_(graph.out_edges.size()), edge_(graph.out_edges.size(), no_edge) {}

  /// `towards`: paths end at `start`; else they begin there. They pass no dead ends and, with `through_ranks` false, no
  /// ranks. `extend(length, edge)` is the length with one edge more, no less than before.
  template <class Extend>
  void run(std::uint32_t start, bool towards, bool through_ranks, Extend extend) {
    for (const std::uint32_t node : reached_) edge_[node] = no_edge;
    reached_.clear();
    using State = std::pair<Length, std::uint32_t>;
    std::priority_queue<State, std::vector<State>, std::greater<>> open;
    distance_[start] = {};
    open.emplace(Length(), start);
    while (!open.empty()) {
      const std::uint32_t node = open.top().second;
      const bool is_stale = distance_[node] < open.top().first;
      open.pop();
      const bool is_end = graph_.is_dead_end[node] || (!through_ranks && graph_.node_ranks[node] != graph_.no_rank);
      if (is_stale || (node != start && is_end)) continue;
      for (const std::uint32_t e : towards ? graph_.in_edges[node] : graph_.out_edges[node]) {
        const std::uint32_t other = towards ? graph_.edges[e].tail : graph_.edges[e].head;
        if (other == start) continue;
        Length length = extend(distance_[node], e);
        if (edge_[other] == no_edge) {
          reached_.push_back(other);
        } else if (!(length < distance_[other])) {
          continue;
        }
        edge_[other] = e;
        open.emplace(length, other);
        distance_[other] = std::move(length);
      }
    }
  }

  /// By node: the edge next to it on its path; `no_edge` at the start and where there is no path.
  [[nodiscard]] const std::vector<std::uint32_t>& edges() const { return edge_; }
  /// By node, where there is a path.
  [[nodiscard]] const std::vector<Length>& distances() const { return distance_; }

 private:
  const ResourceGraph& graph_;
  std::vector<Length> distance_;
  std::vector<std::uint32_t> edge_, reached_;
};

/// Shortest paths from one node: by node the edge that enters it, as PathSearch has them. Among equal lengths the
/// fewest edges win, then the lowest ids. Requires: lengths by edge that are not negative. Cost: O((nodes + edges) log
/// nodes).
template <class Length>
struct ShortestPaths {
  ShortestPaths(const ResourceGraph& graph, const std::vector<Length>& lengths, std::uint32_t source,
                bool through_ranks) {
    using Hops = std::pair<Length, std::uint32_t>;  // and how many edges
    PathSearch<Hops> search(graph);
    search.run(source, false, through_ranks,
               [&](const Hops& path, std::uint32_t e) { return Hops(path.first + lengths[e], path.second + 1); });
    for (const Hops& found : search.distances()) distance.push_back(found.first);
    entering_edge = search.edges();
  }

  std::vector<Length> distance;
  std::vector<std::uint32_t> entering_edge;
};

}  // namespace espalier::planners
