// What the planners compute by own code, against the libraries that know the same algorithm, on machines that ship:
// docs/decisions/0010 has the figures and what followed from them.
#include <benchmark/benchmark.h>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/edge_coloring.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench/lemon_arborescence.h"
#include "planners/graph/path_search.h"
#include "planners/graph/rank_groups.h"
#include "planners/graph/residual.h"
#include "planners/lp/trees/arborescence.h"
#include "planners/lp/trees/tree_repair.h"
#include "planners/packing/reduce/edge_coloring.h"
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

/// The links of routes from one rank: other ranks do not forward.
struct NotThroughRanks {
  const Topology* machine = nullptr;
  NodeId start;
  bool operator()(LinkId link) const {
    const NodeId tail = machine->link(link).tail;
    return tail == start || machine->rank_of(tail).is_none();
  }
};

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

/// Passes of trees through parallel switches: every link in carries `degree` trees to as many links out, no two of
/// which are the same, so that the library may colour them, too.
std::vector<std::pair<std::uint32_t, std::uint32_t>> crossing(std::uint32_t links, std::uint32_t degree) {
  Random random(7);
  std::vector<std::uint32_t> order(links);
  for (std::uint32_t i = 0; i < links; ++i) order[i] = i;
  for (std::uint32_t i = links; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  for (std::uint32_t in = 0; in < links; ++in) {
    for (std::uint32_t i = 0; i < degree; ++i) edges.emplace_back(in, order[(in + i) % links]);
  }
  return edges;
}

void edge_coloring_own(benchmark::State& state) {
  const auto degree = static_cast<std::uint32_t>(state.range(1));
  const auto edges = crossing(static_cast<std::uint32_t>(state.range(0)), degree);
  for (auto _ : state) benchmark::DoNotOptimize(planners::color_edges(edges, degree));
  state.counters["colors"] = degree;
}

void edge_coloring_boost(benchmark::State& state) {
  const auto links = static_cast<std::uint32_t>(state.range(0));
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, boost::no_property,
                                      boost::property<boost::edge_color_t, std::size_t>>;
  Graph graph(2 * std::size_t{links});
  for (const auto& [in, out] : crossing(links, static_cast<std::uint32_t>(state.range(1)))) {
    add_edge(in, links + out, graph);
  }
  std::size_t colors = 0;
  for (auto _ : state) colors = boost::edge_coloring(graph, get(boost::edge_color, graph));
  state.counters["colors"] = static_cast<double>(colors);
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
      const boost::filtered_graph<Topology, NotThroughRanks> usable(machine, {&machine, start});
      boost::dijkstra_shortest_paths(usable, start.value(),
                                     boost::distance_map(boost::make_iterator_property_map(distance.begin(), index))
                                         .predecessor_map(boost::make_iterator_property_map(before.begin(), index)));
      benchmark::DoNotOptimize(distance.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(machine.rank_count()));
}

/// What rings and trees ask again and again: the route of fewest links to one rank over links with room, and of several
/// the widest.
void residual_route_own(benchmark::State& state) {
  const Topology machine = read_machine(state);
  const planners::Residual residual(machine);
  const Rank last(machine.rank_count() - 1);
  for (auto _ : state) {
    for (std::size_t i = 0; i < last.index(); ++i) benchmark::DoNotOptimize(residual.find_route(Rank(i), last, 1));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(last.index()));
}

/// Less than that: some route of fewest links, to every node.
void residual_route_boost(benchmark::State& state) {
  const Topology machine = read_machine(state);
  const Rank last(machine.rank_count() - 1);
  std::vector<boost::default_color_type> colors(machine.node_count());
  std::vector<std::uint32_t> before(machine.node_count());
  const auto index = get(boost::vertex_index, machine);
  const auto visitor = boost::make_bfs_visitor(
      boost::record_predecessors(boost::make_iterator_property_map(before.begin(), index), boost::on_tree_edge()));
  for (auto _ : state) {
    for (std::size_t i = 0; i < last.index(); ++i) {
      const NodeId start = machine.node_of(Rank(i));
      const boost::filtered_graph<Topology, NotThroughRanks> usable(machine, {&machine, start});
      std::ranges::fill(colors, boost::white_color);
      boost::queue<std::uint32_t> pending;
      boost::breadth_first_visit(usable, start.value(), pending, visitor,
                                 boost::make_iterator_property_map(colors.begin(), index));
      benchmark::DoNotOptimize(before.data());
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(last.index()));
}

/// A resource graph as the library likes it best.
using BoostEdges = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property,
                                                      boost::property<boost::edge_weight_t, double>>;

BoostEdges copy_to_boost(const planners::ResourceGraph& graph, const std::vector<double>& lengths) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  for (const planners::ResourceGraph::Edge& edge : graph.edges) ends.emplace_back(edge.tail, edge.head);
  return {boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), lengths.begin(), graph.node_ranks.size()};
}

/// The edges of paths that begin at some nodes and pass no other ranks.
struct FromNodes {
  const planners::ResourceGraph* graph = nullptr;
  const BoostEdges* edges = nullptr;
  const std::vector<bool>* is_start = nullptr;
  bool operator()(const BoostEdges::edge_descriptor& edge) const {
    const auto tail = source(edge, *edges);
    return (*is_start)[tail] || graph->node_ranks[tail] == planners::ResourceGraph::no_rank;
  }
};

/// A machine's network as linear programs see it, with a price for every edge.
struct PricedGraph {
  explicit PricedGraph(benchmark::State& state)
      : machine(read_machine(state)), graph(planners::make_resource_graph(machine, false)) {
    Random random(3);
    while (lengths.size() < graph.edges.size()) lengths.push_back(static_cast<double>(random.between(1, 9)));
  }

  Topology machine;
  planners::ResourceGraph graph;
  std::vector<double> lengths;
};

/// What prices a round of trees: the cheapest paths from every rank to all others past no third, of equally cheap ones
/// those of fewest edges.
void priced_paths_own(benchmark::State& state) {
  const PricedGraph priced(state);
  for (auto _ : state) {
    for (const std::uint32_t node : priced.graph.rank_nodes) {
      benchmark::DoNotOptimize(planners::ShortestPaths<double>(priced.graph, priced.lengths, node, false));
    }
  }
}

/// Less than that: some cheapest paths.
void priced_paths_boost(benchmark::State& state) {
  const PricedGraph priced(state);
  const BoostEdges edges = copy_to_boost(priced.graph, priced.lengths);
  std::vector<bool> is_start(num_vertices(edges), false);
  const boost::filtered_graph<BoostEdges, FromNodes> usable(edges, {&priced.graph, &edges, &is_start});
  const auto index = get(boost::vertex_index, edges);
  for (auto _ : state) {
    for (const std::uint32_t node : priced.graph.rank_nodes) {
      std::vector<double> distance(is_start.size());
      std::vector<std::size_t> before(is_start.size());
      is_start[node] = true;
      boost::dijkstra_shortest_paths(usable, node,
                                     boost::distance_map(boost::make_iterator_property_map(distance.begin(), index))
                                         .predecessor_map(boost::make_iterator_property_map(before.begin(), index)));
      is_start[node] = false;
      benchmark::DoNotOptimize(distance.data());
      benchmark::DoNotOptimize(before.data());
    }
  }
}

/// A library's search through all that some ranks reach past no others.
class BoostSearch {
 public:
  explicit BoostSearch(const PricedGraph& priced)
      : graph_(priced.graph), edges_(copy_to_boost(graph_, priced.lengths)), before_(graph_.node_ranks.size()) {}

  /// By node: the one before it.
  const std::vector<std::size_t>& run(const std::vector<std::uint32_t>& starts) {
    std::vector<bool> is_start(before_.size(), false);
    for (const std::uint32_t node : starts) is_start[node] = true;
    const boost::filtered_graph<BoostEdges, FromNodes> usable(edges_, {&graph_, &edges_, &is_start});
    const auto index = get(boost::vertex_index, edges_);
    std::vector<boost::default_color_type> colors(before_.size(), boost::white_color);
    boost::queue<std::size_t> pending;
    const auto visitor = boost::make_bfs_visitor(
        boost::record_predecessors(boost::make_iterator_property_map(before_.begin(), index), boost::on_tree_edge()));
    boost::breadth_first_visit(usable, starts.begin(), starts.end(), pending, visitor,
                               boost::make_iterator_property_map(colors.begin(), index));
    return before_;
  }

 private:
  const planners::ResourceGraph& graph_;
  BoostEdges edges_;
  std::vector<std::size_t> before_;
};

/// The machines of a cluster, each next to the nearest that is left.
void rank_groups_own(benchmark::State& state) {
  const Topology machine = read_machine(state);
  for (auto _ : state) benchmark::DoNotOptimize(planners::group_ranks(machine));
}

/// Less than that: a search from the ranks of every machine but the last.
void rank_groups_boost(benchmark::State& state) {
  const PricedGraph priced(state);
  BoostSearch search(priced);
  std::vector<std::vector<std::uint32_t>> groups;
  for (const std::vector<Rank>& ranks : planners::group_ranks(priced.machine).groups) {
    groups.emplace_back();
    for (const Rank rank : ranks) groups.back().push_back(priced.graph.rank_nodes[rank.index()]);
  }
  groups.pop_back();
  for (auto _ : state) {
    for (const auto& nodes : groups) benchmark::DoNotOptimize(search.run(nodes));
  }
}

/// A tree from the first rank over cheapest paths.
std::vector<planners::RankPath> tree_of(const PricedGraph& priced) {
  const planners::ResourceGraph& graph = priced.graph;
  const planners::ShortestPaths<double> paths(graph, priced.lengths, graph.rank_nodes[0], true);
  std::vector<std::uint32_t> edges;
  for (std::uint32_t rank = 1; rank < graph.rank_count(); ++rank) {
    const auto path = planners::path_from(graph, paths.entering_edge(), graph.rank_nodes[rank], false);
    edges.insert(edges.end(), path.begin(), path.end());
  }
  return planners::split_paths(graph, edges);
}

/// The tree without what enters a rank, joined again, for every rank; or nothing to join, which takes the rest of the
/// time.
void tree_repair_own(benchmark::State& state) {
  const PricedGraph priced(state);
  const bool breaks = state.range(1) != 0;
  const std::vector<planners::RankPath> whole = tree_of(priced);
  for (auto _ : state) {
    for (std::size_t i = 0; i < whole.size(); ++i) {
      std::vector<planners::RankPath> broken = whole;
      if (breaks) broken[i].edges.front() = planners::gone;
      benchmark::DoNotOptimize(planners::repair_tree(priced.graph, std::move(broken), 0, false));
    }
  }
}

/// Less than that: a search from all other ranks.
void tree_repair_boost(benchmark::State& state) {
  const PricedGraph priced(state);
  BoostSearch search(priced);
  for (auto _ : state) {
    for (std::size_t i = 1; i < priced.graph.rank_count(); ++i) {
      std::vector<std::uint32_t> others = priced.graph.rank_nodes;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      benchmark::DoNotOptimize(search.run(others));
    }
  }
}

BENCHMARK(priced_paths_own)->DenseRange(0, 2);
BENCHMARK(priced_paths_boost)->DenseRange(0, 2);
BENCHMARK(rank_groups_own)->DenseRange(1, 2);
BENCHMARK(rank_groups_boost)->DenseRange(1, 2);
BENCHMARK(tree_repair_own)->ArgsProduct({{0, 1, 2}, {0, 1}});
BENCHMARK(tree_repair_boost)->DenseRange(0, 2);
BENCHMARK(residual_route_own)->DenseRange(0, 2);
BENCHMARK(residual_route_boost)->DenseRange(0, 2);
BENCHMARK(routes_own)->DenseRange(0, 2);
BENCHMARK(routes_boost_dijkstra)->DenseRange(0, 2);
BENCHMARK(max_flow_own)->DenseRange(0, 2);
BENCHMARK(max_flow_boost_push_relabel)->DenseRange(0, 2);
BENCHMARK(max_flow_boost_boykov)->DenseRange(0, 2);
BENCHMARK(max_flow_lemon)->DenseRange(0, 2);
BENCHMARK(edge_coloring_own)->Args({8, 4})->Args({64, 16})->Args({256, 32});
BENCHMARK(edge_coloring_boost)->Args({8, 4})->Args({64, 16})->Args({256, 32});
BENCHMARK(arborescence_own)->Arg(8)->Arg(64)->Arg(256);
BENCHMARK(arborescence_lemon)->Arg(8)->Arg(64)->Arg(256);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
