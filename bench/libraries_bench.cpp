// What the planners compute by own code, against the libraries that know the same algorithm, on machines that ship:
// docs/decisions/0010 has the figures and what followed from them.
#include <benchmark/benchmark.h>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/disjoint_sets.h"
#include "base/random.h"
#include "bench/lemon_arborescence.h"
#include "planners/lp/trees/arborescence.h"
#include "topology/analysis/flow_network.h"
#include "topology/analysis/max_flow.h"
#include "topology/boost_graph.h"
#include "topology/routes.h"
#include "topology/yaml/read_topology.h"

namespace espalier::bench {
namespace {

const std::vector<std::string> machines = {"dgx1v", "dgx-h100-x4", "dgx-a100-x16"};

Topology read_machine(benchmark::State& state) {
  const std::string& name = machines[static_cast<std::size_t>(state.range(0))];
  auto reading = read_topology_file(std::string(ESPALIER_SOURCE_DIR "/configs/") + name + ".yaml");
  if (!reading.topology) std::abort();
  state.SetLabel(name);
  return std::move(*reading.topology);
}

/// A bound's work: the largest flow from every rank to the last one, on one network.
class Flows {
 public:
  explicit Flows(benchmark::State& state) : network_(read_machine(state), Direction::forward) {}

  [[nodiscard]] const FlowNetwork& network() const { return network_; }
  template <class Run>
  void run_all(benchmark::State& state, Run run) const {
    const auto ranks = network_.rank_vertices();
    for (auto _ : state) {
      std::int64_t sum = 0;
      for (std::size_t i = 0; i + 1 < ranks.size(); ++i) sum += run(ranks[i], ranks.back());
      benchmark::DoNotOptimize(sum);
      sum_ = sum;
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ranks.size() - 1));
    state.counters["flow"] = static_cast<double>(sum_);  // The same of all.
  }

 private:
  FlowNetwork network_;
  mutable std::int64_t sum_ = 0;
};

void max_flow_own(benchmark::State& state) {
  const Flows flows(state);
  MaxFlow<std::int64_t> own(flows.network().vertex_count());
  for (const FlowArc& arc : flows.network().arcs()) own.add_arc(arc.tail, arc.head, arc.capacity);
  flows.run_all(state, [&](std::uint32_t from, std::uint32_t to) { return own.run(from, to); });
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using BoostNetwork = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS,
    boost::property<boost::vertex_color_t, boost::default_color_type,
                    boost::property<boost::vertex_distance_t, long,
                                    boost::property<boost::vertex_predecessor_t, Traits::edge_descriptor>>>,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

BoostNetwork copy_to_boost(const FlowNetwork& network) {
  BoostNetwork copy(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) {
    const auto forth = add_edge(arc.tail, arc.head, copy).first;
    const auto back = add_edge(arc.head, arc.tail, copy).first;
    put(boost::edge_capacity, copy, forth, arc.capacity);
    put(boost::edge_capacity, copy, back, std::int64_t{0});
    put(boost::edge_reverse, copy, forth, back);
    put(boost::edge_reverse, copy, back, forth);
  }
  return copy;
}

void max_flow_boost_push_relabel(benchmark::State& state) {
  const Flows flows(state);
  BoostNetwork copy = copy_to_boost(flows.network());
  flows.run_all(state, [&](std::uint32_t from, std::uint32_t to) { return push_relabel_max_flow(copy, from, to); });
}

void max_flow_boost_boykov(benchmark::State& state) {
  const Flows flows(state);
  BoostNetwork copy = copy_to_boost(flows.network());
  flows.run_all(state,
                [&](std::uint32_t from, std::uint32_t to) { return boykov_kolmogorov_max_flow(copy, from, to); });
}

void max_flow_lemon(benchmark::State& state) {
  const Flows flows(state);
  lemon::SmartDigraph graph;
  lemon::SmartDigraph::ArcMap<std::int64_t> capacity(graph);
  for (std::size_t i = 0; i < flows.network().vertex_count(); ++i) graph.addNode();
  for (const FlowArc& arc : flows.network().arcs()) {
    const auto id =
        graph.addArc(graph.nodeFromId(static_cast<int>(arc.tail)), graph.nodeFromId(static_cast<int>(arc.head)));
    capacity[id] = arc.capacity;
  }
  flows.run_all(state, [&](std::uint32_t from, std::uint32_t to) {
    lemon::Preflow<lemon::SmartDigraph, lemon::SmartDigraph::ArcMap<std::int64_t>> flow(
        graph, capacity, graph.nodeFromId(static_cast<int>(from)), graph.nodeFromId(static_cast<int>(to)));
    flow.runMinCut();
    return flow.flowValue();
  });
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> random_pairs(std::uint32_t count) {
  Random random(3);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t i = 0; i < count; ++i) {
    pairs.emplace_back(static_cast<std::uint32_t>(random.below(count)),
                       static_cast<std::uint32_t>(random.below(count)));
  }
  return pairs;
}

void disjoint_sets_own(benchmark::State& state) {
  const auto pairs = random_pairs(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    DisjointSets sets(pairs.size());
    for (const auto& [a, b] : pairs) sets.join(a, b);
    benchmark::DoNotOptimize(sets.find(0));
  }
}

void disjoint_sets_boost(benchmark::State& state) {
  const auto pairs = random_pairs(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) {
    boost::disjoint_sets_with_storage<> sets(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) sets.make_set(i);
    for (const auto& [a, b] : pairs) sets.union_set(std::size_t{a}, std::size_t{b});
    benchmark::DoNotOptimize(sets.find_set(std::size_t{0}));
  }
}

/// Prices of a linear program: dense, of which many are alike.
std::vector<std::int64_t> random_prices(std::uint32_t vertices) {
  Random random(5);
  std::vector<std::int64_t> prices(std::size_t{vertices} * vertices);
  for (std::int64_t& price : prices) price = random.between(0, 1000) * random.between(0, 1);
  return prices;
}

void arborescence_own(benchmark::State& state) {
  const auto vertices = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::int64_t> prices = random_prices(vertices);
  for (auto _ : state) benchmark::DoNotOptimize(planners::cheapest_arborescence(prices, vertices, 0));
}

void arborescence_lemon(benchmark::State& state) {
  const auto vertices = static_cast<std::uint32_t>(state.range(0));
  const std::vector<std::int64_t> prices = random_prices(vertices);
  LemonArborescence lemon(prices, vertices);
  for (auto _ : state) benchmark::DoNotOptimize(lemon.find());
}

/// All routes of all ranks: the fastest for 1 MiB, with every tie dealt out.
void routes_own(benchmark::State& state) {
  const Topology machine = read_machine(state);
  for (auto _ : state) {
    for (std::size_t i = 0; i < machine.rank_count(); ++i) benchmark::DoNotOptimize(routes_from(machine, Rank(i)));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(machine.rank_count()));
}

/// Less than that: the least latencies from each rank to all nodes, and one path to each.
void routes_boost_dijkstra(benchmark::State& state) {
  const Topology machine = read_machine(state);
  std::vector<std::int64_t> distance(machine.node_count());
  std::vector<std::uint32_t> before(machine.node_count());
  const auto index = get(boost::vertex_index, machine);
  for (auto _ : state) {
    for (std::size_t i = 0; i < machine.rank_count(); ++i) {
      const NodeId start = machine.node_of(Rank(i));
      const auto may_be_used = [&](LinkId link) {
        const NodeId tail = machine.link(link).tail;
        return tail == start || machine.rank_of(tail).is_none();
      };
      const std::function<bool(LinkId)> filter = may_be_used;
      const boost::filtered_graph<Topology, std::function<bool(LinkId)>> usable(machine, filter);
      boost::dijkstra_shortest_paths(usable, start.value(),
                                     boost::distance_map(boost::make_iterator_property_map(distance.begin(), index))
                                         .predecessor_map(boost::make_iterator_property_map(before.begin(), index)));
      benchmark::DoNotOptimize(distance.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(machine.rank_count()));
}

BENCHMARK(routes_own)->DenseRange(0, 2);
BENCHMARK(routes_boost_dijkstra)->DenseRange(0, 2);
BENCHMARK(max_flow_own)->DenseRange(0, 2);
BENCHMARK(max_flow_boost_push_relabel)->DenseRange(0, 2);
BENCHMARK(max_flow_boost_boykov)->DenseRange(0, 2);
BENCHMARK(max_flow_lemon)->DenseRange(0, 2);
BENCHMARK(disjoint_sets_own)->Arg(100)->Arg(10'000);
BENCHMARK(disjoint_sets_boost)->Arg(100)->Arg(10'000);
BENCHMARK(arborescence_own)->Arg(8)->Arg(64)->Arg(256);
BENCHMARK(arborescence_lemon)->Arg(8)->Arg(64)->Arg(256);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
