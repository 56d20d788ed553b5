#pragma once

// Tested by: tests/unit/planners/graph/path_search_test.cpp

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "planners/graph/resource_graph.h"

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
      : graph_(graph), distance_(graph.out_edges.size()), edge_(distance_.size(), no_edge), settled_(distance_.size()) {
    reached_.reserve(distance_.size());
  }

  /// `towards`: paths end at `start`; else they begin there. They pass no dead ends and, with `through_ranks` false, no
  /// ranks. `extend(length, edge)` is the length with one edge more, no less than before.
  template <class Extend>
  void run(std::uint32_t start, bool towards, bool through_ranks, Extend extend) {
    run(std::span(&start, 1), towards, through_ranks, nullptr, extend);
  }
  /// The same from whichever of several nodes is nearest. Where there is a limit, only shorter paths are found.
  template <class Extend>
  void run(std::span<const std::uint32_t> starts, bool towards, bool through_ranks, const Length* limit,
           Extend extend) {
    for (const std::uint32_t node : reached_) {
      edge_[node] = no_edge;
      settled_[node] = 0;
    }
    reached_.assign(starts.begin(), starts.end());
    for (const std::uint32_t start : starts) {
      distance_[start] = {};
      settled_[start] = 1;
    }
    using State = std::pair<Length, std::uint32_t>;
    std::priority_queue<State, std::vector<State>, std::greater<>> open;
    const auto extend_from = [&](std::uint32_t node) {
      for (const std::uint32_t e : towards ? graph_.in_edges[node] : graph_.out_edges[node]) {
        const std::uint32_t other = towards ? graph_.edges[e].tail : graph_.edges[e].head;
        if (settled_[other] != 0) continue;
        Length length = extend(distance_[node], e);
        if (limit != nullptr && !(length < *limit)) continue;
        if (edge_[other] == no_edge) {
          reached_.push_back(other);
        } else if (!(length < distance_[other])) {
          continue;
        }
        edge_[other] = e;
        const bool is_end = graph_.is_dead_end[other] || (!through_ranks && graph_.node_ranks[other] != graph_.no_rank);
        if (!is_end) open.emplace(length, other);
        distance_[other] = std::move(length);
      }
    };
    for (const std::uint32_t start : starts) extend_from(start);
    while (!open.empty()) {
      const std::uint32_t node = open.top().second;
      open.pop();
      if (settled_[node] != 0) continue;
      settled_[node] = 1;
      extend_from(node);
    }
  }

  /// By node: the edge next to it on its path; `no_edge` at the start and where there is no path.
  [[nodiscard]] const std::vector<std::uint32_t>& edges() const { return edge_; }
  /// All nodes that have a path, and the starts.
  [[nodiscard]] std::span<const std::uint32_t> reached() const { return reached_; }
  /// By node, where there is a path.
  [[nodiscard]] const std::vector<Length>& distances() const { return distance_; }

 private:
  const ResourceGraph& graph_;
  std::vector<Length> distance_;
  std::vector<std::uint32_t> edge_, reached_;
  std::vector<std::uint8_t> settled_;
};

/// Shortest paths from one node: by node the edge that enters it, as PathSearch has them. Among equal lengths the
/// fewest edges win, then the lowest ids. Requires: lengths by edge that are not negative. Cost: O((nodes + edges) log
/// nodes).
template <class Length>
class ShortestPaths {
 public:
  ShortestPaths(const ResourceGraph& graph, const std::vector<Length>& lengths, std::uint32_t source,
                bool through_ranks)
      : search_(graph) {
    search_.run(source, false, through_ranks,
                [&](const Hops& path, std::uint32_t e) { return Hops(path.first + lengths[e], path.second + 1); });
  }

  [[nodiscard]] bool has_path(std::uint32_t node) const { return entering_edge()[node] != search_.no_edge; }
  /// Requires: a path, or the source.
  [[nodiscard]] const Length& distance(std::uint32_t node) const { return search_.distances()[node].first; }
  [[nodiscard]] const std::vector<std::uint32_t>& entering_edge() const { return search_.edges(); }

 private:
  using Hops = std::pair<Length, std::uint32_t>;  // and how many edges
  PathSearch<Hops> search_;
};

}  // namespace espalier::planners
