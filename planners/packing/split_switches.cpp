#include "planners/packing/split_switches.h"

#include <algorithm>

#include "base/check.h"
#include "planners/packing/demand_oracle.h"
#include "planners/packing/even_split.h"
#include "planners/packing/switch_sides.h"

namespace espalier {
namespace {

/// Capacities may be multiplied up to this much so that they divide evenly, and their sum up to this far.
constexpr std::int64_t most_refinement = std::int64_t{1} << 20U;
constexpr __int128 most_capacity = std::int64_t{1} << 61U;

/// What is dealt from each edge in to each edge out.
using Amounts = std::vector<std::vector<std::int64_t>>;

/// The splitting of one graph: the graph with its paths, and the oracle with the same edges under the same numbers.
class Splitter {
 public:
  Splitter(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices, std::span<const std::int64_t> demands,
           Refinement refinement)
      : graph_(graph),
        groups_(graph),
        oracle_(graph.vertex_count(), rank_vertices, demands),
        is_switch_(graph.vertex_count(), true),
        most_factor_(refinement == Refinement::none ? 1 : most_refinement) {
    for (const std::uint32_t vertex : rank_vertices) is_switch_[vertex] = false;
    for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
      copy_to_oracle(id);
      total_ += graph.edge(id).capacity;
    }
    for (const std::int64_t demand : demands) {
      total_ += demand;
      roots_ += demand > 0 ? 1 : 0;
    }
  }

  /// False when it gave up (split_switches.h).
  bool run() {
    for (std::uint32_t vertex = next_switch(); vertex < graph_.vertex_count(); vertex = next_switch()) {
      is_switch_[vertex] = false;
      if (!remove(SwitchEdges(graph_, vertex))) return false;
      ESPALIER_CHECK(SwitchEdges(graph_, vertex).in.empty(), "a balanced switch must split off whole");
    }
    return true;
  }

  [[nodiscard]] const Splitting& splitting() const { return splitting_; }

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

  /// The switch with the fewest pairs of edges; vertex_count when all are gone.
  [[nodiscard]] std::uint32_t next_switch() const {
    auto best = static_cast<std::uint32_t>(graph_.vertex_count());
    std::size_t fewest = 0;
    for (std::uint32_t vertex = 0; vertex < graph_.vertex_count(); ++vertex) {
      if (!is_switch_[vertex]) continue;
      const SwitchEdges edges(graph_, vertex);
      const std::size_t pairs = edges.in.size() * edges.out.size();
      if (best < graph_.vertex_count() && pairs >= fewest) continue;
      best = vertex;
      fewest = pairs;
    }
    return best;
  }

  bool remove(const SwitchEdges& edges) {
    if (edges.in.empty()) return true;
    for (const Dealing dealing : {Dealing::across_by_place, Dealing::across, Dealing::all_pairs}) {
      const bool divides = make_divisible(edges, dealing);
      if (!split_evenly(edges, even_amounts(edges, dealing))) continue;
      splitting_.is_exactly_even = splitting_.is_exactly_even && divides;
      return true;
    }
    if (splitting_.factor > 1 && roots_ > 1) return false;
    splitting_.is_exactly_even = false;
    split_by_pairs(edges, even_amounts(edges, Dealing::across));
    return true;
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

  /// Multiplies everything so that an even dealing divides exactly; false where no factor within the limits does that.
  bool make_divisible(const SwitchEdges& edges, Dealing dealing) {
    const auto sides = groups_.sides(graph_, edges, dealing, splitting_.factor);
    const std::int64_t factor = even_factor(sides.in, sides.out).value_or(0);
    if (factor == 0 || splitting_.factor * factor > most_factor_ || total_ * factor > most_capacity) return false;
    graph_.scale(factor);
    oracle_.scale(factor);
    splitting_.factor *= factor;
    total_ *= factor;
    return true;
  }

  /// Empty when there is no even dealing.
  [[nodiscard]] Amounts even_amounts(const SwitchEdges& edges, Dealing dealing) const {
    const auto sides = groups_.sides(graph_, edges, dealing, splitting_.factor);
    return even_split(sides.in, sides.out);
  }

  /// Deals everything out at once; false, and nothing done, when some rank would get too little.
  bool split_evenly(const SwitchEdges& edges, const Amounts& amounts) {
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
  void split_by_pairs(const SwitchEdges& edges, const Amounts& even) {
    for (std::size_t i = 0; i < edges.in.size() && !even.empty(); ++i) {
      for (std::size_t j = 0; j < edges.out.size(); ++j) split_most(edges.in[i], edges.out[j], even[i][j]);
    }
    for (const std::uint32_t in : edges.in) {
      for (const bool may_return : {false, true}) {
        for (const std::uint32_t out : edges.out) {
          if (returns(in, out) == may_return) split_most(in, out, graph_.edge(in).capacity);
        }
      }
    }
  }

  void split_most(std::uint32_t in, std::uint32_t out, std::int64_t limit) {
    const std::int64_t amount = std::min({limit, graph_.edge(in).capacity, graph_.edge(out).capacity});
    if (amount == 0) return;
    const std::int64_t allowed = oracle_.apply_most(changes_of(in, out), amount);
    if (allowed > 0) split(in, out, allowed);
  }

  CapacityGraph& graph_;
  NeighbourGroups groups_;
  DemandOracle oracle_;
  std::vector<bool> is_switch_;
  Splitting splitting_;
  std::int64_t most_factor_;
  __int128 total_ = 0;
  std::size_t roots_ = 0;
};

}  // namespace

std::optional<Splitting> split_switches(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                                        std::span<const std::int64_t> demands, Refinement refinement) {
  CapacityGraph split = graph;
  Splitter splitter(split, rank_vertices, demands, refinement);
  if (!splitter.run()) return std::nullopt;
  graph = std::move(split);
  return splitter.splitting();
}

}  // namespace espalier
