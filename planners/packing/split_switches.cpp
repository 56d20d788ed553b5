#include "planners/packing/split_switches.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "planners/packing/demand_oracle.h"
#include "planners/packing/even_split.h"

namespace espalier {
namespace {

/// The splitting of one graph: the graph with its paths, and the oracle with the same edges under the same numbers.
class Splitter {
 public:
  Splitter(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices, std::span<const std::int64_t> demands)
      : graph_(graph), oracle_(graph.vertex_count(), rank_vertices, demands), is_switch_(graph.vertex_count(), true) {
    for (const std::uint32_t vertex : rank_vertices) is_switch_[vertex] = false;
    for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
      copy_to_oracle(id);
      original_.push_back({graph.edge(id).tail, graph.edge(id).head, graph.edge(id).capacity});
    }
    for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) singles_.push_back(vertex);
  }

  void run() {
    for (std::uint32_t vertex = next_switch(); vertex < graph_.vertex_count(); vertex = next_switch()) {
      is_switch_[vertex] = false;
      remove(vertex);
    }
  }

 private:
  void copy_to_oracle(std::uint32_t id) {
    const CapacityGraph::Edge& edge = graph_.edge(id);
    oracle_.add_edge(edge.tail, edge.head, edge.capacity);
  }

  /// The edge from `tail` to `head` in both.
  std::uint32_t find_or_add(std::uint32_t tail, std::uint32_t head) {
    const std::size_t before = graph_.edge_count();
    const std::uint32_t id = graph_.find_or_add(tail, head);
    if (graph_.edge_count() > before) copy_to_oracle(id);
    return id;
  }

  [[nodiscard]] std::vector<std::uint32_t> with_capacity(std::span<const std::uint32_t> edges) const {
    std::vector<std::uint32_t> kept;
    std::copy_if(edges.begin(), edges.end(), std::back_inserter(kept),
                 [this](std::uint32_t id) { return graph_.edge(id).capacity > 0; });
    return kept;
  }

  /// The switch with the fewest pairs of edges; vertex_count when all are gone.
  [[nodiscard]] std::uint32_t next_switch() const {
    auto best = static_cast<std::uint32_t>(graph_.vertex_count());
    std::size_t fewest = 0;
    for (std::uint32_t vertex = 0; vertex < graph_.vertex_count(); ++vertex) {
      if (!is_switch_[vertex]) continue;
      const std::size_t pairs =
          with_capacity(graph_.in_edges(vertex)).size() * with_capacity(graph_.out_edges(vertex)).size();
      if (best < graph_.vertex_count() && pairs >= fewest) continue;
      best = vertex;
      fewest = pairs;
    }
    return best;
  }

  void remove(std::uint32_t vertex) {
    const std::vector<std::uint32_t> in = with_capacity(graph_.in_edges(vertex));
    const std::vector<std::uint32_t> out = with_capacity(graph_.out_edges(vertex));
    if (in.empty()) return;
    if (count_neighbours(in, out) <= 2 || in.size() == 1 || out.size() == 1) {
      contract(in, out);
    } else {
      const std::vector<std::uint32_t> group = groups_apart(in, out);
      if (!split_evenly(in, out, group) && !split_evenly(in, out, singles_)) split_by_pairs(in, out, group);
    }
    ESPALIER_CHECK(with_capacity(graph_.in_edges(vertex)).empty(), "a balanced switch must split off whole");
  }

  /// For every vertex, a vertex that stands for all those that edges faster than these connect to it.
  [[nodiscard]] std::vector<std::uint32_t> groups_apart(std::span<const std::uint32_t> in,
                                                        std::span<const std::uint32_t> out) const {
    std::int64_t fastest = 0;
    for (const auto side : {in, out}) {
      for (const std::uint32_t id : side) fastest = std::max(fastest, graph_.edge(id).capacity);
    }
    std::vector<std::uint32_t> group = singles_;
    const auto find = [&group](std::uint32_t vertex) {
      while (group[vertex] != vertex) vertex = group[vertex] = group[group[vertex]];
      return vertex;
    };
    for (const auto& [tail, head, capacity] : original_) {
      if (capacity > fastest) group[find(tail)] = find(head);
    }
    for (std::uint32_t vertex = 0; vertex < group.size(); ++vertex) group[vertex] = find(vertex);
    return group;
  }

  [[nodiscard]] std::size_t count_neighbours(std::span<const std::uint32_t> in,
                                             std::span<const std::uint32_t> out) const {
    std::vector<std::uint32_t> neighbours;
    for (const std::uint32_t id : in) neighbours.push_back(graph_.edge(id).tail);
    for (const std::uint32_t id : out) neighbours.push_back(graph_.edge(id).head);
    std::sort(neighbours.begin(), neighbours.end());
    return static_cast<std::size_t>(std::unique(neighbours.begin(), neighbours.end()) - neighbours.begin());
  }

  [[nodiscard]] bool returns(std::uint32_t in, std::uint32_t out) const {
    return graph_.edge(in).tail == graph_.edge(out).head;
  }

  /// The edges that change when capacity goes past the switch instead of through it.
  std::vector<DemandOracle::Change> changes_of(std::uint32_t in, std::uint32_t out) {
    std::vector<DemandOracle::Change> changes{{in, -1}, {out, -1}};
    if (!returns(in, out)) changes.push_back({find_or_add(graph_.edge(in).tail, graph_.edge(out).head), 1});
    return changes;
  }

  void split(std::uint32_t in, std::uint32_t out, std::int64_t amount) {
    const auto changes = changes_of(in, out);
    graph_.split_off(in, out, amount);
    for (const auto& change : changes) oracle_.set_capacity(change.edge, graph_.edge(change.edge).capacity);
  }

  /// No cut can tell the difference when all capacity on one side belongs to one neighbour, or when there are only two.
  void contract(std::span<const std::uint32_t> in, std::span<const std::uint32_t> out) {
    for (const bool may_return : {false, true}) {
      for (const std::uint32_t from : in) {
        for (const std::uint32_t to : out) {
          if (returns(from, to) != may_return) continue;
          const std::int64_t amount = std::min(graph_.edge(from).capacity, graph_.edge(to).capacity);
          if (amount > 0) split(from, to, amount);
        }
      }
    }
  }

  /// What an even dealing between groups sends from each edge in to each edge out; empty when there is none.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> even_amounts(std::span<const std::uint32_t> in,
                                                                    std::span<const std::uint32_t> out,
                                                                    std::span<const std::uint32_t> group) const {
    std::vector<std::int64_t> in_amounts, out_amounts;
    std::vector<std::uint32_t> in_groups, out_groups;
    for (const std::uint32_t id : in) {
      in_amounts.push_back(graph_.edge(id).capacity);
      in_groups.push_back(group[graph_.edge(id).tail]);
    }
    for (const std::uint32_t id : out) {
      out_amounts.push_back(graph_.edge(id).capacity);
      out_groups.push_back(group[graph_.edge(id).head]);
    }
    return even_split(in_amounts, in_groups, out_amounts, out_groups);
  }

  /// Deals everything out evenly at once; false, and nothing done, when some rank would get too little.
  bool split_evenly(std::span<const std::uint32_t> in, std::span<const std::uint32_t> out,
                    std::span<const std::uint32_t> group) {
    const auto amounts = even_amounts(in, out, group);
    if (amounts.empty()) return false;
    const auto change_all = [&](std::int64_t sign) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t j = 0; j < out.size(); ++j) {
          if (amounts[i][j] == 0) continue;
          for (const auto& change : changes_of(in[i], out[j])) {
            oracle_.set_capacity(change.edge, oracle_.capacity(change.edge) + sign * change.sign * amounts[i][j]);
          }
        }
      }
    };
    change_all(1);
    const bool satisfied = oracle_.is_satisfied();
    change_all(-1);
    if (!satisfied) return false;
    for (std::size_t i = 0; i < in.size(); ++i) {
      for (std::size_t j = 0; j < out.size(); ++j) {
        if (amounts[i][j] > 0) split(in[i], out[j], amounts[i][j]);
      }
    }
    return true;
  }

  /// Splits each pair as far as all cuts allow: even shares first, then what is left, returning capacity last.
  void split_by_pairs(std::span<const std::uint32_t> in, std::span<const std::uint32_t> out,
                      std::span<const std::uint32_t> group) {
    const auto even = even_amounts(in, out, group);
    if (!even.empty()) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t j = 0; j < out.size(); ++j) split_most(in[i], out[j], even[i][j]);
      }
    }
    for (const std::uint32_t from : in) {
      for (const bool may_return : {false, true}) {
        for (const std::uint32_t to : out) {
          if (returns(from, to) == may_return) split_most(from, to, graph_.edge(from).capacity);
        }
      }
    }
  }

  void split_most(std::uint32_t from, std::uint32_t to, std::int64_t limit) {
    const std::int64_t amount = std::min({limit, graph_.edge(from).capacity, graph_.edge(to).capacity});
    if (amount == 0) return;
    const std::int64_t allowed = oracle_.apply_most(changes_of(from, to), amount);
    if (allowed > 0) split(from, to, allowed);
  }

  CapacityGraph& graph_;
  DemandOracle oracle_;
  struct OriginalEdge {
    std::uint32_t tail, head;
    std::int64_t capacity;
  };
  std::vector<OriginalEdge> original_;  ///< The edges before any splitting.
  std::vector<std::uint32_t> singles_;  ///< Every vertex is a group of its own.
  std::vector<bool> is_switch_;
};

}  // namespace

void split_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                    std::span<const std::int64_t> demands) {
  Splitter(graph, rank_vertices, demands).run();
}

}  // namespace espalier
