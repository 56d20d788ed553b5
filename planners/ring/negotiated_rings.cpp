#include "planners/ring/negotiated_rings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planners/bounds/cut_rate.h"
#include "planners/ring/held_karp.h"
#include "planners/ring/ring_hops.h"
#include "planners/ring/ring_placement.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

namespace {

std::int64_t whole_part(const Rational& value) {
  return BigInteger(numerator(value) / denominator(value)).convert_to<std::int64_t>();
}

/// Whether every cut between ranks lets `count` rings of this rate through, in whole multiples per link.
bool cuts_allow(const PlanningProblem& problem, const Rational& rate, std::size_t count) {
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const FlowNetwork& network = problem.flow_network(direction);
    // One more on every arc, against so many per ring, keeps cuts that let no ring through from being empty.
    const auto per_ring = static_cast<std::int64_t>(network.arcs().size() + 1);
    std::vector<std::int64_t> places;
    for (const FlowArc& arc : network.arcs()) {
      const std::int64_t rings = whole_part(Rational(BigInteger(arc.capacity) * network.capacity_unit()) / rate);
      places.push_back(1 + per_ring * std::min(rings, static_cast<std::int64_t>(count)));
    }
    const __int128 smallest = broadcast_cut(network.with_capacities(places), Rank(0)).capacity;
    if (smallest / per_ring < static_cast<__int128>(count)) return false;
  }
  return true;
}

class Negotiation {
 public:
  Negotiation(const Topology& topology, const ResourceGraph& graph, const Rational& rate, std::size_t count,
              WorkBudget& work)
      : graph_(graph),
        work_(work),
        rings_(count),
        orders_(count),
        used_(graph.capacity.size(), 0),
        past_(used_.size(), 0) {
    for (const BigInteger& capacity : graph.capacity)
      places_.push_back(whole_part(Rational(capacity * graph.unit) / rate));
    for (const ResourceGraph::Edge& edge : graph.edges) {
      // Parallel links have places of their own; what is left on each is of no use to a ring of this rate.
      std::int64_t places = 0;
      for (const LinkId link : edge.links)
        places += whole_part(topology.link(link).bandwidth().bytes_per_second / rate);
      places_[edge.resources.front()] = places;
    }
  }

  /// The rings' cycles, or none.
  std::vector<Column> run() {
    constexpr int max_rounds = 200;
    for (int round = 0; round < max_rounds; ++round) {
      for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
        if (round > 0 && !meets_overfull(rings_[ring])) continue;
        if (!work_.spend() || !lay_out(ring)) return {};
      }
      if (!raise_prices()) return std::move(rings_);
    }
    return {};
  }

 private:
  [[nodiscard]] bool meets_overfull(const Column& ring) const {
    return std::ranges::any_of(ring.loads, [&](Entry entry) { return used_[entry.index] > places_[entry.index]; });
  }

  bool lay_out(std::size_t ring) {
    Column& column = rings_[ring];
    std::vector<std::uint32_t>& order = orders_[ring];
    for (const Entry entry : column.loads) used_[entry.index] -= entry.value;
    const RingHops<double> hops = make_ring_hops<double>(graph_, prices());
    order = order.empty() ? cheap_cycles(hops.cost, graph_.rank_count()).front() : improve_cycle(hops.cost, order);
    if (!is_whole(hops, order)) return false;
    column = cycle_column(graph_, hops, order);
    for (const Entry entry : column.loads) used_[entry.index] += entry.value;
    return true;
  }

  /// What it costs to use a resource once more.
  [[nodiscard]] std::vector<double> prices() const {
    std::vector<double> prices(used_.size());
    for (std::size_t r = 0; r < prices.size(); ++r) {
      const std::int64_t over = std::max<std::int64_t>(0, used_[r] + 1 - places_[r]);
      prices[r] = (1 + past_[r]) * (1 + pressure_ * static_cast<double>(over));
      if (places_[r] == 0) prices[r] *= closed;
    }
    return prices;
  }

  /// False when nothing is overfull.
  bool raise_prices() {
    bool overfull = false;
    for (std::size_t r = 0; r < used_.size(); ++r) {
      const std::int64_t over = used_[r] - places_[r];
      if (over <= 0) continue;
      overfull = true;
      past_[r] += static_cast<double>(over);
    }
    pressure_ = std::min(pressure_ * 1.1, 64.0);
    return overfull;
  }

  static constexpr double closed = 1e6;

  const ResourceGraph& graph_;
  WorkBudget& work_;
  std::vector<Column> rings_;
  std::vector<std::vector<std::uint32_t>> orders_;  ///< The ranks of each ring.
  std::vector<std::int64_t> places_;                ///< By resource, how many rings it can carry.
  std::vector<std::int64_t> used_;
  std::vector<double> past_;  ///< How overfull a resource was in all rounds.
  double pressure_ = 0.5;
};

}  // namespace

std::optional<RingSet> negotiate_rings(const PlanningProblem& problem, const Rational& rate, std::size_t count,
                                       WorkBudget& work) {
  if (!cuts_allow(problem, rate, count)) return std::nullopt;
  const Topology& topology = problem.topology();
  const ResourceGraph graph = make_resource_graph(topology, false);
  std::vector<ColumnSolution::Part> parts;
  for (Column& column : Negotiation(topology, graph, rate, count, work).run()) {
    parts.push_back({std::move(column), rate / graph.unit});
  }
  if (parts.empty()) return std::nullopt;
  return place_rings(topology, graph, parts);
}

}  // namespace espalier::planners
