#pragma once

// Tested by: tests/unit/topology/analysis/max_flow_test.cpp

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace espalier {

/// Maximum flow by Dinic's algorithm on a graph whose capacities may change between runs and that may grow.
///
/// `Capacity` is std::int64_t or __int128; the sum of all capacities must fit. Several sources and several sinks are
/// taken at once, each without a limit of its own, so contracting vertices needs no arcs. Arcs are numbered in the
/// order in which they were added; the answer never depends on anything else. Not safe to share between threads.
/// Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation",
/// Soviet Math. Doklady 11, 1970.
template <class Capacity>
class MaxFlow {
 public:
  explicit MaxFlow(std::size_t vertex_count) : first_(vertex_count + 1, 0), is_terminal_(vertex_count, 0) {}

  static constexpr Capacity no_limit = [] {
    if constexpr (sizeof(Capacity) > sizeof(std::int64_t)) {
      return static_cast<Capacity>(static_cast<unsigned __int128>(-1) >> 1U);
    } else {
      return std::numeric_limits<Capacity>::max();
    }
  }();

  [[nodiscard]] std::size_t vertex_count() const { return first_.size() - 1; }
  [[nodiscard]] std::size_t arc_count() const { return capacity_.size(); }
  /// How often the last `run` passed over the arcs.
  [[nodiscard]] std::int64_t pass_count() const { return passes_; }

  /// Adds an arc and returns its number.
  std::uint32_t add_arc(std::uint32_t tail, std::uint32_t head, Capacity capacity) {
    head_.push_back(head);
    head_.push_back(tail);
    capacity_.push_back(capacity);
    grouped_ = false;
    return static_cast<std::uint32_t>(capacity_.size() - 1);
  }

  void set_capacity(std::uint32_t arc, Capacity capacity) { capacity_[arc] = capacity; }
  [[nodiscard]] Capacity capacity(std::uint32_t arc) const { return capacity_[arc]; }
  [[nodiscard]] std::uint32_t tail(std::uint32_t arc) const { return head_[2 * arc + 1]; }
  [[nodiscard]] std::uint32_t head(std::uint32_t arc) const { return head_[std::size_t{2} * arc]; }

  /// The largest flow from the sources to the sinks, or `limit` when it is at least that large.
  /// Requires: no vertex is both; capacities >= 0; limit >= 0.
  /// Cost: O(V^2 E) at worst, in practice a few passes over the arcs.
  Capacity run(std::span<const std::uint32_t> sources, std::span<const std::uint32_t> sinks,
               Capacity limit = no_limit) {
    if (!grouped_) group();
    residual_.resize(head_.size());
    for (std::size_t arc = 0; arc < capacity_.size(); ++arc) {
      residual_[2 * arc] = capacity_[arc];
      residual_[2 * arc + 1] = 0;
    }
    return push(sources, sinks, limit);
  }

  Capacity run(std::uint32_t source, std::uint32_t sink, Capacity limit = no_limit) {
    return run(std::span(&source, 1), std::span(&sink, 1), limit);
  }

  /// As `run`, but on top of the flow that the last one left: what more can go from the source to the sink, other flow
  /// giving way where it can without losing its own source and sink. Ends that are near each other in a large graph
  /// cost what lies around them: paths are first looked for one by one, from both ends at once.
  Capacity run_more(std::uint32_t source, std::uint32_t sink, Capacity limit) {
    constexpr int max_paths = 256;
    Capacity flow = 0;
    for (int path = 0; path < max_paths && flow < limit; ++path) {
      if (!find_path(source, sink)) return flow;
      flow += augment(limit - flow);
    }
    return flow < limit ? flow + push(std::span(&source, 1), std::span(&sink, 1), limit - flow) : flow;
  }

  /// The flow on an arc after `run`.
  [[nodiscard]] Capacity flow(std::uint32_t arc) const { return residual_[2 * arc + 1]; }

  /// The vertices that the sources still reach after a `run` that did not stop at its limit: the smallest source side
  /// of a minimum cut.
  [[nodiscard]] std::vector<bool> source_side(std::span<const std::uint32_t> sources) const {
    std::vector<bool> reached(vertex_count(), false);
    std::vector<std::uint32_t> pending(sources.begin(), sources.end());
    for (const std::uint32_t source : sources) reached[source] = true;
    while (!pending.empty()) {
      const std::uint32_t vertex = pending.back();
      pending.pop_back();
      for (std::uint32_t i = first_[vertex]; i < first_[vertex + 1]; ++i) {
        const std::uint32_t half = order_[i];
        if (residual_[half] == 0 || reached[head_[half]]) continue;
        reached[head_[half]] = true;
        pending.push_back(head_[half]);
      }
    }
    return reached;
  }

 private:
  static constexpr std::uint32_t unreached = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint8_t is_source = 1;
  static constexpr std::uint8_t is_sink = 2;

  /// Lists the half-arcs (2a leaves the tail of arc a, 2a + 1 its head) by the vertex that they leave.
  void group() {
    std::fill(first_.begin(), first_.end(), 0);
    for (std::size_t half = 0; half < head_.size(); ++half) ++first_[head_[half ^ 1U] + 1];
    for (std::size_t vertex = 0; vertex < vertex_count(); ++vertex) first_[vertex + 1] += first_[vertex];
    order_.resize(head_.size());
    next_.assign(first_.begin(), first_.end() - 1);
    for (std::size_t half = 0; half < head_.size(); ++half) {
      order_[next_[head_[half ^ 1U]]++] = static_cast<std::uint32_t>(half);
    }
    level_.resize(vertex_count());
    mark_.assign(vertex_count(), 0);
    reached_by_.resize(vertex_count());
    grouped_ = true;
  }

  Capacity push(std::span<const std::uint32_t> sources, std::span<const std::uint32_t> sinks, Capacity limit) {
    for (const std::uint32_t source : sources) is_terminal_[source] = is_source;
    for (const std::uint32_t sink : sinks) is_terminal_[sink] = is_sink;
    Capacity flow = 0;
    passes_ = 1;
    while (flow < limit && find_levels(sinks)) {
      for (const std::uint32_t source : sources) {
        if (level_[source] == source_level_) flow += push_from(source, limit - flow);
      }
    }
    for (const std::uint32_t source : sources) is_terminal_[source] = 0;
    for (const std::uint32_t sink : sinks) is_terminal_[sink] = 0;
    return flow;
  }

  /// Distances to the sinks in the residual graph, up to the first source. False when no source is reached.
  bool find_levels(std::span<const std::uint32_t> sinks) {
    ++passes_;
    std::fill(level_.begin(), level_.end(), unreached);
    queue_.assign(sinks.begin(), sinks.end());
    for (const std::uint32_t sink : sinks) level_[sink] = 0;
    source_level_ = unreached;
    for (std::size_t done = 0; done < queue_.size(); ++done) {
      const std::uint32_t vertex = queue_[done];
      if (level_[vertex] >= source_level_) break;
      for (std::uint32_t i = first_[vertex]; i < first_[vertex + 1]; ++i) {
        const std::uint32_t half = order_[i];
        const std::uint32_t before = head_[half];
        if (residual_[half ^ 1U] == 0 || level_[before] != unreached) continue;
        level_[before] = level_[vertex] + 1;
        if (is_terminal_[before] == is_source) source_level_ = std::min(source_level_, level_[before]);
        queue_.push_back(before);
      }
    }
    std::copy(first_.begin(), first_.end() - 1, next_.begin());
    return source_level_ != unreached;
  }

  /// What one end of a search for a path has reached.
  struct Side {
    std::vector<std::uint32_t> frontier;
    std::uint64_t arcs = 0;  ///< That leave the frontier.
    std::uint32_t mark = 0;
  };

  void start(Side& side, std::uint32_t vertex) {
    side.mark = ++last_mark_;
    side.frontier.assign(1, vertex);
    side.arcs = first_[vertex + 1] - first_[vertex];
    mark_[vertex] = side.mark;
  }

  /// A path in the residual graph with few arcs, in `path_`; false when there is none. The side whose next step looks
  /// at fewer arcs goes on, so that a hub is only looked through where both sides have come to one.
  bool find_path(std::uint32_t source, std::uint32_t sink) {
    if (last_mark_ > std::numeric_limits<std::uint32_t>::max() - 2) {
      std::fill(mark_.begin(), mark_.end(), 0);
      last_mark_ = 0;
    }
    start(ahead_, source);
    start(behind_, sink);
    while (!ahead_.frontier.empty() && !behind_.frontier.empty()) {
      const bool is_ahead = ahead_.arcs <= behind_.arcs;
      const std::uint32_t meeting = is_ahead ? step<true>(ahead_, behind_.mark) : step<false>(behind_, ahead_.mark);
      if (meeting == unreached) continue;
      trace(meeting, source, sink);
      return true;
    }
    return false;
  }

  /// Reaches all that is one arc further; gives the half-arc over which it meets the other side, or `unreached`.
  template <bool is_ahead>
  std::uint32_t step(Side& side, std::uint32_t other) {
    queue_.swap(side.frontier);
    side.frontier.clear();
    side.arcs = 0;
    for (const std::uint32_t vertex : queue_) {
      for (std::uint32_t i = first_[vertex]; i < first_[vertex + 1]; ++i) {
        const std::uint32_t half = is_ahead ? order_[i] : order_[i] ^ 1U;  // In the direction of the flow.
        const std::uint32_t next = head_[order_[i]];
        if (residual_[half] == 0 || mark_[next] == side.mark) continue;
        if (mark_[next] == other) return half;
        mark_[next] = side.mark;
        reached_by_[next] = half;
        side.frontier.push_back(next);
        side.arcs += first_[next + 1] - first_[next];
      }
    }
    return unreached;
  }

  /// The path over the half-arc where both sides met.
  void trace(std::uint32_t meeting, std::uint32_t source, std::uint32_t sink) {
    path_.clear();
    for (std::uint32_t at = head_[meeting ^ 1U]; at != source; at = head_[reached_by_[at] ^ 1U]) {
      path_.push_back(reached_by_[at]);
    }
    std::reverse(path_.begin(), path_.end());
    path_.push_back(meeting);
    for (std::uint32_t at = head_[meeting]; at != sink; at = head_[reached_by_[at]]) path_.push_back(reached_by_[at]);
  }

  /// A blocking flow from one source along arcs that come one level closer, at most `limit`.
  Capacity push_from(std::uint32_t source, Capacity limit) {
    Capacity pushed = 0;
    std::uint32_t vertex = source;
    path_.clear();
    while (pushed < limit) {
      if (is_terminal_[vertex] == is_sink) {
        pushed += augment(limit - pushed);
        vertex = path_.empty() ? source : head_[path_.back()];
        continue;
      }
      if (advance(vertex)) continue;
      if (path_.empty()) break;
      level_[vertex] = unreached;  // a dead end for the rest of this phase
      vertex = head_[path_.back() ^ 1U];
      path_.pop_back();
    }
    return pushed;
  }

  /// Extends the path by one arc that has room and comes closer; false when there is none left at this vertex.
  bool advance(std::uint32_t& vertex) {
    for (std::uint32_t& i = next_[vertex]; i < first_[vertex + 1]; ++i) {
      const std::uint32_t half = order_[i];
      if (residual_[half] == 0 || level_[head_[half]] + 1 != level_[vertex]) continue;
      path_.push_back(half);
      vertex = head_[half];
      return true;
    }
    return false;
  }

  /// Pushes what the path allows and cuts it back to the first arc that became full.
  Capacity augment(Capacity limit) {
    Capacity amount = limit;
    for (const std::uint32_t half : path_) amount = std::min(amount, residual_[half]);
    std::size_t kept = path_.size();
    for (std::size_t i = path_.size(); i-- > 0;) {
      residual_[path_[i]] -= amount;
      residual_[path_[i] ^ 1U] += amount;
      if (residual_[path_[i]] == 0) kept = i;
    }
    path_.resize(kept);
    return amount;
  }

  std::vector<std::uint32_t> head_;  ///< Per half-arc.
  std::vector<Capacity> capacity_;   ///< Per arc.
  std::vector<Capacity> residual_;   ///< Per half-arc.
  std::vector<std::uint32_t> first_, order_;
  std::vector<std::uint32_t> level_, next_, queue_, path_;
  std::vector<std::uint32_t> mark_, reached_by_;  ///< Per vertex: by whom it was reached, and over which half-arc.
  std::vector<std::uint8_t> is_terminal_;
  Side ahead_, behind_;
  std::uint32_t last_mark_ = 0;
  std::uint32_t source_level_ = unreached;
  std::int64_t passes_ = 0;
  bool grouped_ = false;
};

}  // namespace espalier
