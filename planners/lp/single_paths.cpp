#include "planners/lp/single_paths.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "planners/graph/path_search.h"

namespace espalier::planners {
namespace {

constexpr std::uint32_t max_rounds = 8;
constexpr double sharpness = 12;  ///< How much dearer what is full is than what is empty: e to this.
constexpr double max_exponent = 300;
constexpr double max_work = 5e7;  ///< Demands x ranks x edges.

/// The tree of one demand's paths as it grows: every rank is entered by one path from rank to rank.
struct Growing {
  std::vector<std::vector<std::uint32_t>> entering;  ///< By rank: the edges of that path; none where not yet reached.
  std::vector<std::uint32_t> parent;                 ///< By rank: where that path begins.
  std::vector<std::uint32_t> reached;                ///< Ranks, the source first.
};

class BlockPlacer {
 public:
  BlockPlacer(const OrbitGraph& orbits, const std::vector<FlowDemand>& demands, double limit)
      : orbits_(orbits), graph_(orbits.graph), demands_(demands), search_(orbits.graph) {
    for (const BigInteger& capacity : orbits.capacity) part_.push_back(limit / capacity.convert_to<double>());
    history_.assign(part_.size(), 0);
  }

  /// All blocks, the near ones first, demand by demand. Nothing where rates are so unlike that lengths are rounded to
  /// nothing, and a rank would come before the one that it is reached through.
  std::optional<std::vector<Column>> place() {
    loads_.assign(part_.size(), 0);
    renew_lengths();
    std::vector<Column> columns;
    for (std::uint32_t group = 0; group < demands_.size(); ++group) {
      auto column = place_blocks_of(group);
      if (!column) return std::nullopt;
      columns.push_back(*std::move(column));
    }
    for (std::size_t r = 0; r < loads_.size(); ++r) history_[r] += std::max(0.0, fullness(r) - 1);
    return columns;
  }

 private:
  [[nodiscard]] double fullness(std::size_t resource) const { return loads_[resource] * part_[resource]; }

  void renew_lengths() {
    std::vector<double> prices(part_.size());
    for (std::size_t r = 0; r < prices.size(); ++r) {
      prices[r] = part_[r] * std::exp(std::min(max_exponent, sharpness * (fullness(r) + history_[r])));
    }
    lengths_ = edge_lengths<double>(orbits_, prices);
  }

  /// Ranks by how far they are from the source on an empty network.
  [[nodiscard]] std::vector<std::uint32_t> near_first(const FlowDemand& demand) const {
    const std::vector<double> empty = edge_lengths<double>(orbits_, part_);
    const ShortestPaths<double> paths(graph_, empty, graph_.rank_nodes[demand.source], true);
    std::vector<std::uint32_t> order = demand.targets;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t rank) { return paths.distance(graph_.rank_nodes[rank]); });
    return order;
  }

  std::optional<Column> place_blocks_of(std::uint32_t group) {
    const FlowDemand& demand = demands_[group];
    Growing tree{std::vector<std::vector<std::uint32_t>>(graph_.rank_count()),
                 std::vector<std::uint32_t>(graph_.rank_count(), demand.source),
                 {demand.source}};
    std::vector<std::int64_t> uses(graph_.edges.size(), 0);
    for (const std::uint32_t target : near_first(demand)) {
      if (!grow(tree, target)) return std::nullopt;
      for (std::uint32_t rank = target; rank != demand.source; rank = tree.parent[rank]) {
        for (const std::uint32_t e : tree.entering[rank]) {
          ++uses[e];
          for (const std::uint32_t resource : graph_.edges[e].resources) {
            loads_[orbits_.resources.of[resource]] += static_cast<double>(demand.copies);
          }
        }
      }
      renew_lengths();
    }
    Column column;
    column.group = group;
    for (const std::uint32_t rank : tree.reached) {
      column.edges.insert(column.edges.end(), tree.entering[rank].begin(), tree.entering[rank].end());
    }
    column.loads = orbit_loads(orbits_, uses, demand.copies);
    return column;
  }

  /// Joins a rank to the tree by the path that is shortest from the source on; false where none leads to it.
  bool grow(Growing& tree, std::uint32_t target) {
    const auto add = [&](const Hops& path, std::uint32_t e) { return Hops(path.first + lengths_[e], path.second + 1); };
    search_.run(graph_.rank_nodes[target], true, false, add);
    std::vector<Hops> to_rank(graph_.rank_count());
    std::uint32_t best = ResourceGraph::no_rank;
    Hops shortest;
    for (const std::uint32_t rank : tree.reached) {
      Hops& way = to_rank[rank];
      way = to_rank[tree.parent[rank]];
      for (const std::uint32_t e : tree.entering[rank]) way = add(way, e);
      const std::uint32_t node = graph_.rank_nodes[rank];
      if (search_.edges()[node] == search_.no_edge || (graph_.is_dead_end[node] && rank != tree.reached.front()))
        continue;
      const Hops& rest = search_.distances()[node];
      const Hops whole(way.first + rest.first, way.second + rest.second);
      if (best == ResourceGraph::no_rank || whole < shortest) {
        best = rank;
        shortest = whole;
      }
    }
    if (best == ResourceGraph::no_rank) return false;
    tree.parent[target] = best;
    tree.reached.push_back(target);
    std::uint32_t node = graph_.rank_nodes[best];
    while (node != graph_.rank_nodes[target]) {
      const std::uint32_t e = search_.edges()[node];
      tree.entering[target].push_back(e);
      node = graph_.edges[e].head;
    }
    return true;
  }

  using Hops = std::pair<double, std::uint32_t>;  // a length, and how many edges

  const OrbitGraph& orbits_;
  const ResourceGraph& graph_;
  const std::vector<FlowDemand>& demands_;
  PathSearch<Hops> search_;
  std::vector<double> part_;     ///< By orbit of resources: how full one block makes it, at the limit.
  std::vector<double> history_;  ///< The same: how overfull it was, round after round.
  std::vector<double> loads_;    ///< The same: blocks.
  std::vector<double> lengths_;  ///< By edge.
};

}  // namespace

std::optional<RoundedPacking> find_single_paths(const OrbitGraph& orbits, const std::vector<FlowDemand>& demands,
                                                const Rational& limit) {
  const double work =
      static_cast<double>(demands.size()) * orbits.graph.rank_count() * static_cast<double>(orbits.graph.edges.size());
  if (work > max_work) return std::nullopt;
  const MasterProgram program = FlowOracle(orbits, demands).program();
  const std::vector<std::int64_t> shares(demands.size(), 1);
  BlockPlacer placer(orbits, demands, limit.convert_to<double>());
  std::optional<RoundedPacking> best;
  for (std::uint32_t round = 0; round < max_rounds; ++round) {
    const auto columns = placer.place();
    if (!columns) break;
    auto packing = pack_shares(program, *columns, shares, 1);
    if (packing && (!best || packing->reached > best->reached)) best = std::move(packing);
    if (best && best->reached >= limit) break;
  }
  return best;
}

}  // namespace espalier::planners
