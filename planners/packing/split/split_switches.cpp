#include "planners/packing/split/split_switches.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.h"
#include "planners/packing/split/demand_oracle.h"
#include "planners/packing/split/even_split.h"

namespace espalier::planners {
namespace {

/// What is dealt from each edge into a switch to each edge out of it.
using DealtAmounts = std::vector<std::vector<std::int64_t>>;

std::size_t count_neighbours(const CapacityGraph& graph, const SwitchEdges& edges) {
  std::vector<std::uint32_t> neighbours;
  for (const std::uint32_t id : edges.in) neighbours.push_back(graph.edge(id).tail);
  for (const std::uint32_t id : edges.out) neighbours.push_back(graph.edge(id).head);
  std::sort(neighbours.begin(), neighbours.end());
  return static_cast<std::size_t>(std::unique(neighbours.begin(), neighbours.end()) - neighbours.begin());
}

/// Splits off the switches that need no choice, and says which are left.
std::vector<std::uint32_t> contract_simple_switches(CapacityGraph& graph, const FlowNetwork& network) {
  std::vector<std::uint32_t> switches;
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
    if (network.rank_at(vertex).is_none()) switches.push_back(vertex);
  }
  for (bool changed = true; changed;) {
    changed = std::erase_if(switches, [&](std::uint32_t vertex) {
                const SwitchEdges edges(graph, vertex);
                if (edges.in.size() > 1 && edges.out.size() > 1 && count_neighbours(graph, edges) > 2) return false;
                join_through(graph, edges);
                return true;
              }) > 0;
  }
  return switches;
}

/// The splitting of one graph: the graph with its paths, and the oracle with the same edges under the same numbers.
class Splitter {
 public:
  Splitter(CapacityGraph& graph, const FlowNetwork& network, std::span<const std::int64_t> demands, WorkBudget& budget)
      : graph_(graph),
        waiting_(contract_simple_switches(graph, network)),
        oracle_(graph.vertex_count(), network.rank_vertices(), demands, budget),
        budget_(budget) {
    for (std::uint32_t id = 0; id < graph.edge_count(); ++id) copy_to_oracle(id);
  }

  /// False when the budget was spent.
  bool run() {
    while (!waiting_.empty()) {
      if (!remove(next())) return false;
    }
    return true;
  }

 private:
  void copy_to_oracle(std::uint32_t id) {
    const CapacityGraph::Edge& edge = graph_.edge(id);
    oracle_.add_edge(edge.tail, edge.head, edge.capacity);
  }

  /// The switch with the fewest pairs of edges.
  SwitchEdges next() {
    std::optional<SwitchEdges> best;
    std::size_t best_place = 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      SwitchEdges edges(graph_, waiting_[i]);
      if (best && edges.in.size() * edges.out.size() >= best->in.size() * best->out.size()) continue;
      best = std::move(edges);
      best_place = i;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(best_place));
    return *std::move(best);
  }

  [[nodiscard]] DealtAmounts even_amounts(const SwitchEdges& edges) const {
    SwitchSide in, out;
    for (const std::uint32_t id : edges.in) {
      in.amounts.push_back(graph_.edge(id).capacity);
      in.neighbours.push_back(graph_.edge(id).tail);
    }
    for (const std::uint32_t id : edges.out) {
      out.amounts.push_back(graph_.edge(id).capacity);
      out.neighbours.push_back(graph_.edge(id).head);
    }
    return even_split(in, out);
  }

  /// The edge from `tail` to `head` in both.
  std::uint32_t find_or_add(std::uint32_t tail, std::uint32_t head) {
    const std::size_t before = graph_.edge_count();
    const std::uint32_t id = graph_.find_or_add(tail, head);
    if (graph_.edge_count() > before) copy_to_oracle(id);
    return id;
  }

  bool remove(const SwitchEdges& edges) {
    const DealtAmounts even = even_amounts(edges);
    return split_evenly(edges, even) || split_by_pairs(edges, even);
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

  /// Deals everything out at once; false, and nothing done, when some rank would get too little.
  bool split_evenly(const SwitchEdges& edges, const DealtAmounts& amounts) {
    if (amounts.empty()) return false;
    const auto for_each = [&](auto apply) {
      for (std::size_t i = 0; i < edges.in.size(); ++i) {
        for (std::size_t j = 0; j < edges.out.size(); ++j) {
          if (amounts[i][j] > 0) apply(edges.in[i], edges.out[j], amounts[i][j]);
        }
      }
    };
    const auto try_out = [&](std::int64_t sign) {
      for_each([&](std::uint32_t in, std::uint32_t out, std::int64_t amount) {
        for (const auto& change : changes_of(in, out)) {
          oracle_.set_capacity(change.edge, oracle_.capacity(change.edge) + sign * change.sign * amount);
        }
      });
    };
    try_out(1);
    const bool satisfied = oracle_.is_satisfied();
    try_out(-1);
    if (satisfied) for_each([&](auto in, auto out, auto amount) { split(in, out, amount); });
    return satisfied;
  }

  /// Splits each pair as far as all cuts allow: even shares first, then what is left, returning capacity last.
  bool split_by_pairs(const SwitchEdges& edges, const DealtAmounts& even) {
    for (std::size_t i = 0; i < edges.in.size() && !even.empty(); ++i) {
      for (std::size_t j = 0; j < edges.out.size(); ++j) split_most(edges.in[i], edges.out[j], even[i][j]);
    }
    for (const std::uint32_t in : edges.in) {
      for (const bool may_return : {false, true}) {
        for (const std::uint32_t out : edges.out) {
          if (returns(in, out) == may_return) split_most(in, out, graph_.edge(in).capacity);
        }
      }
      if (budget_.is_spent()) return false;
      ESPALIER_CHECK(graph_.edge(in).capacity == 0, "a balanced switch splits off whole");
    }
    return true;
  }

  void split_most(std::uint32_t in, std::uint32_t out, std::int64_t limit) {
    const std::int64_t amount = std::min({limit, graph_.edge(in).capacity, graph_.edge(out).capacity});
    if (amount == 0) return;
    const std::int64_t allowed = oracle_.apply_most(changes_of(in, out), amount);
    if (allowed > 0) split(in, out, allowed);
  }

  CapacityGraph& graph_;
  std::vector<std::uint32_t> waiting_;  ///< Switches that had no turn.
  DemandOracle oracle_;
  WorkBudget& budget_;
};

}  // namespace

bool split_switches(CapacityGraph& graph, const FlowNetwork& network, std::span<const std::int64_t> demands,
                    WorkBudget& budget) {
  return Splitter(graph, network, demands, budget).run();
}

}  // namespace espalier::planners
