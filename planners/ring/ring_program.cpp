#include "planners/ring/ring_program.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "planners/lp/restricted_master.h"
#include "planners/ring/held_karp.h"
#include "planners/ring/ring_hops.h"
#include "planners/ring/ring_placement.h"

namespace espalier::planners {

namespace {

template <class Price>
PricedColumns<Price> cheapest_ring(const ResourceGraph& graph, std::span<const Price> prices) {
  const RingHops<Price> hops = make_ring_hops(graph, prices);
  const std::vector<std::uint32_t> order = cheapest_cycle(std::span<const Price>(hops.cost), graph.rank_count());
  PricedColumns<Price> priced;
  priced.columns.push_back(cycle_column(graph, hops, order));
  priced.costs.push_back(cost_of(priced.columns.front(), prices));
  return priced;
}

}  // namespace

MasterProgram RingOracle::program() const { return {graph_.capacity, {0}, 1, Sharing::free}; }

PricedColumns<double> RingOracle::cheapest(std::span<const double> prices) const {
  return cheapest_ring(graph_, prices);
}

PricedColumns<BigInteger> RingOracle::cheapest(std::span<const BigInteger> prices) const {
  return cheapest_ring(graph_, prices);
}

bool RingOracle::has_cycle(const ResourceGraph& graph) {
  const std::vector<double> prices(graph.capacity.size(), 1.0);
  const RingHops<double> hops = make_ring_hops<double>(graph, prices);
  return is_whole(hops, cheapest_cycle(std::span<const double>(hops.cost), graph.rank_count()));
}

std::optional<RingSet> best_fractional_rings(const Topology& topology) {
  if (topology.rank_count() < 2 || topology.rank_count() > max_held_karp_vertices) return std::nullopt;
  const ResourceGraph graph = make_resource_graph(topology, false);
  if (!RingOracle::has_cycle(graph)) return RingSet{};
  const RingOracle oracle(graph);
  const ColumnSolution solution = generate_columns(oracle.program(), oracle, {.rounds = 1000, .warm_rounds = 24});
  if (!solution.attained) return std::nullopt;
  RingSet set = place_rings(topology, graph, solution.parts);
  set.limit = solution.limit * graph.unit;
  return set;
}

namespace {

/// Every cycle gives half of what it carries to the same cycle backwards.
void add_mirror_images(const ResourceGraph& graph, std::vector<ColumnSolution::Part>& parts) {
  const std::size_t count = parts.size();
  for (std::size_t i = 0; i < count; ++i) {
    parts[i].amount /= 2;
    ColumnSolution::Part image = parts[i];
    std::ranges::reverse(image.column.edges);
    for (std::uint32_t& e : image.column.edges) e = graph.edges[e].mirror;
    parts.push_back(std::move(image));
  }
}

/// Column generation with cheap cycles instead of cheapest: the master program's optimum over what they find.
class CheapGeneration {
 public:
  CheapGeneration(const ResourceGraph& graph)
      : graph_(graph), program_{graph.capacity, {0}, 1, Sharing::free}, master_(program_) {}

  std::vector<ColumnSolution::Part> run() {
    if (!warm_up()) return {};
    const auto ranks = static_cast<std::int64_t>(graph_.rank_count());
    const std::int64_t rounds = std::min(max_rounds, work_limit / (ranks * ranks * ranks));
    // Dual prices jump from one solution to the next: cycles are sought at smoothed ones (P. Neame, "Nonsmooth dual
    // methods in integer programming", 2000), and at the program's own only where these find nothing.
    std::vector<double> smoothed;
    for (std::int64_t round = 0; round < rounds && master_.solve(); ++round) {
      const std::vector<double> prices = master_.prices();
      if (smoothed.empty()) smoothed = prices;
      for (std::size_t r = 0; r < smoothed.size(); ++r) smoothed[r] = (smoothed[r] + prices[r]) / 2;
      if (add(smoothed, true)) continue;
      smoothed = prices;
      if (!add(prices, true)) break;
    }
    if (!master_.solve()) return {};
    const auto exact = master_.exact();
    std::vector<ColumnSolution::Part> parts;
    for (std::size_t i = 0; exact && i < columns_.size(); ++i) {
      if (exact->amounts[i] > 0) parts.push_back({columns_[i], exact->amounts[i]});
    }
    return parts;
  }

 private:
  /// Links that are full already become dear.
  bool warm_up() {
    std::vector<double> filled(program_.capacity.size(), 0);
    for (int round = 0; round < warm_rounds; ++round) {
      const double fullest = *std::max_element(filled.begin(), filled.end());
      std::vector<double> prices;
      for (std::size_t r = 0; r < filled.size(); ++r) {
        const double fullness = fullest > 0 ? filled[r] / fullest : 1;
        prices.push_back(std::exp(sharpness * (fullness - 1)) / program_.capacity[r].convert_to<double>());
      }
      if (!add(prices, false) && columns_.empty()) return false;
      for (const Entry entry : last_.loads) {
        filled[entry.index] += static_cast<double>(entry.value) / program_.capacity[entry.index].convert_to<double>();
      }
    }
    return true;
  }

  bool add(const std::vector<double>& prices, bool if_gaining) {
    const RingHops<double> hops = make_ring_hops<double>(graph_, prices);
    bool added = false;
    bool cheapest = true;
    for (const std::vector<std::uint32_t>& order : cheap_cycles(hops.cost, graph_.rank_count())) {
      if (!is_whole(hops, order)) continue;
      Column column = cycle_column(graph_, hops, order);
      if (std::exchange(cheapest, false)) last_ = column;
      if (if_gaining && master_.gain(column) <= min_gain) continue;
      if (!known_.insert(column.loads).second) continue;
      master_.add(column);
      columns_.push_back(std::move(column));
      added = true;
    }
    return added;
  }

  static constexpr std::int64_t max_rounds = 300;
  static constexpr std::int64_t work_limit = std::int64_t{1} << 26;
  static constexpr int warm_rounds = 24;
  static constexpr double sharpness = 12;
  static constexpr double min_gain = 1e-6;

  const ResourceGraph& graph_;
  MasterProgram program_;
  RestrictedMaster master_;
  std::vector<Column> columns_;
  std::set<std::vector<Entry>> known_;
  Column last_;
};

}  // namespace

RingSet good_fractional_rings(const Topology& topology) {
  constexpr std::size_t max_ranks = 128;
  if (topology.rank_count() < 2 || topology.rank_count() > max_ranks) return {};
  const ResourceGraph graph = make_resource_graph(topology, true);
  std::vector<ColumnSolution::Part> parts = CheapGeneration(graph).run();
  if (graph.mirrored) add_mirror_images(graph, parts);
  return place_rings(topology, graph, parts);
}

}  // namespace espalier::planners
