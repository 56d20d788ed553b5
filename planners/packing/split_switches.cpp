#include "planners/packing/split_switches.h"

#include <algorithm>

#include "base/check.h"
#include "planners/packing/demand_oracle.h"
#include "planners/packing/switch_dealer.h"

namespace espalier {
namespace {

/// The splitting of one graph: the graph with its paths, and the oracle with the same edges under the same numbers.
class Splitter {
 public:
  Splitter(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices, std::span<const std::int64_t> demands,
           Refinement refinement, WorkBudget& budget)
      : graph_(graph),
        dealer_(graph, rank_vertices, demands, refinement == Refinement::none ? 1 : most_refinement),
        oracle_(graph.vertex_count(), rank_vertices, demands, budget),
        budget_(budget) {
    for (std::uint32_t id = 0; id < graph.edge_count(); ++id) copy_to_oracle(id);
    for (const std::int64_t demand : demands) roots_ += demand > 0 ? 1 : 0;
  }

  /// False when it gave up (split_switches.h).
  bool run() {
    while (const auto edges = dealer_.next()) {
      if (!remove(*edges)) return false;
    }
    return true;
  }

  [[nodiscard]] Splitting splitting() const { return {dealer_.factor(), is_exactly_even_}; }

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

  bool remove(const SwitchEdges& edges) {
    for (const Dealing dealing : {Dealing::across_by_place, Dealing::across, Dealing::all_pairs}) {
      const bool divides = make_divisible(edges, dealing);
      if (!split_evenly(edges, dealer_.amounts(edges, dealing))) continue;
      is_exactly_even_ = is_exactly_even_ && divides;
      return true;
    }
    if (dealer_.factor() > 1 && roots_ > 1) return false;
    is_exactly_even_ = false;
    return split_by_pairs(edges, dealer_.amounts(edges, Dealing::across));
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

  /// Multiplies everything so that an even dealing divides exactly; false where no factor does that.
  bool make_divisible(const SwitchEdges& edges, Dealing dealing) {
    const auto factor = dealer_.factor_for(edges, dealing);
    if (!factor) return false;
    dealer_.scale(*factor);
    oracle_.scale(*factor);
    return true;
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
  SwitchDealer dealer_;
  DemandOracle oracle_;
  WorkBudget& budget_;
  std::size_t roots_ = 0;
  bool is_exactly_even_ = true;
};

}  // namespace

std::optional<Splitting> split_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                                        std::span<const std::int64_t> demands, Refinement refinement,
                                        WorkBudget& budget) {
  CapacityGraph split = graph;
  Splitter splitter(split, rank_vertices, demands, refinement, budget);
  if (!splitter.run()) return std::nullopt;
  graph = std::move(split);
  return splitter.splitting();
}

}  // namespace espalier
