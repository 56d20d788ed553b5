#include "planners/packing/find/gather_trees.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/rational.h"
#include "planners/bounds/cut_rate.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/split/capacity_graph.h"
#include "topology/analysis/max_flow.h"

namespace espalier::planners {
namespace {

/// A path that flow takes from a rank to a rank nearer the root.
struct FlowPath {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  Rational flow;  ///< In shares.
  std::vector<LinkId> links;
};

/// The arcs' flow at the bound, as a graph between ranks that remembers paths.
CapacityGraph flow_to(const FlowNetwork& network, const Collective& collective, const GatherFlow& rate) {
  const Rank root = collective.root;
  const auto source = static_cast<std::uint32_t>(network.vertex_count());
  MaxFlow<std::int64_t> flow(network.vertex_count() + 1);
  for (std::size_t i = 0; i < network.arcs().size(); ++i) {
    flow.add_arc(network.arcs()[i].tail, network.arcs()[i].head, static_cast<std::int64_t>(rate.capacities[i]));
  }
  const auto demand = static_cast<std::int64_t>(rate.part);
  std::int64_t total = 0;
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) {
    if (Rank(rank) == root) continue;
    const std::int64_t sent = demand * collective.share_of(Rank(rank));
    flow.add_arc(source, network.source_of(Rank(rank)), sent);
    total += sent;
  }
  ESPALIER_CHECK(flow.run(source, network.vertex_of(root)) == total, "the bound's rate flows");
  std::vector<std::int64_t> amounts;
  for (std::uint32_t arc = 0; arc < network.arcs().size(); ++arc) amounts.push_back(flow.flow(arc));
  CapacityGraph graph(network, amounts);
  // What flows into a switch flows out of it; any pairing of the two is a set of paths.
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
    if (network.rank_at(vertex).is_none()) join_through(graph, SwitchEdges(graph, vertex));
  }
  return graph;
}

/// Takes flow off cycles until there are none, found by walking on until a vertex comes again.
void cancel_cycles(CapacityGraph& graph) {
  std::vector<bool> is_done(graph.vertex_count(), false);  // no cycle passes it
  for (std::uint32_t start = 0; start < graph.vertex_count(); ++start) {
    std::vector<std::uint32_t> path;  // edges
    for (std::uint32_t vertex = start; !is_done[start];) {
      const auto out = graph.out_edges(vertex);
      const auto next = std::ranges::find_if(
          out, [&](std::uint32_t id) { return graph.edge(id).capacity > 0 && !is_done[graph.edge(id).head]; });
      if (next == out.end()) {
        is_done[vertex] = true;
        if (path.empty()) break;
        vertex = graph.edge(path.back()).tail;
        path.pop_back();
        continue;
      }
      path.push_back(*next);
      vertex = graph.edge(*next).head;
      const auto first = std::ranges::find(path, vertex, [&](std::uint32_t id) { return graph.edge(id).tail; });
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (auto id = first; id != path.end(); ++id) least = std::min(least, graph.edge(*id).capacity);
      for (auto id = first; id != path.end(); ++id) graph.take(*id, least);
      path.erase(first, path.end());
    }
  }
}

/// The decomposition of an acyclic flow into trees towards the root.
class TreeDecomposition {
 public:
  TreeDecomposition(const Collective& collective, std::vector<FlowPath> paths)
      : collective_(collective), paths_(std::move(paths)), in_(collective.rank_count) {
    for (std::uint32_t i = 0; i < paths_.size(); ++i) in_[paths_[i].to].push_back(i);
  }

  /// A tree with its share of the whole.
  struct Part {
    Rational share;
    Arborescence tree;
  };

  std::vector<Part> run() {
    std::vector<Part> parts;
    for (Rational left = 1; left > 0;) {
      const std::vector<std::uint32_t> paths = shortest_tree();
      const std::vector<std::int64_t> below = count_below(paths);
      Part part{left, {collective_.root, 0, {}}};
      for (const std::uint32_t id : paths) {
        const FlowPath& path = paths_[id];
        part.share = std::min(part.share, Rational(path.flow / below[path.from]));
        part.tree.edges.push_back({Rank(path.to), Rank(path.from), path.links});
      }
      for (const std::uint32_t id : paths) paths_[id].flow -= part.share * below[paths_[id].from];
      left -= part.share;
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  /// For every rank with a share one path with flow left, by the fewest paths to the root, those nearest to it first.
  [[nodiscard]] std::vector<std::uint32_t> shortest_tree() const {
    std::vector<std::uint32_t> tree, order{collective_.root.value()};
    std::vector<bool> reached(in_.size(), false);
    reached[order.front()] = true;
    for (std::size_t done = 0; done < order.size(); ++done) {
      for (const std::uint32_t path : in_[order[done]]) {
        const std::uint32_t from = paths_[path].from;
        if (reached[from] || paths_[path].flow == 0) continue;
        reached[from] = true;
        order.push_back(from);
        tree.push_back(path);
      }
    }
    for (std::size_t rank = 0; rank < in_.size(); ++rank) {
      ESPALIER_CHECK(reached[rank] || collective_.share_of(Rank(rank)) == 0,
                     "what a rank still has to send has a path to the root");
    }
    const std::vector<std::int64_t> below = count_below(tree);
    std::erase_if(tree, [&](std::uint32_t path) { return below[paths_[path].from] == 0; });
    return tree;
  }

  /// How many shares are sent through each rank, its own included.
  [[nodiscard]] std::vector<std::int64_t> count_below(const std::vector<std::uint32_t>& tree) const {
    std::vector<std::int64_t> below;
    for (std::size_t rank = 0; rank < in_.size(); ++rank) below.push_back(collective_.share_of(Rank(rank)));
    for (auto path = tree.rbegin(); path != tree.rend(); ++path) below[paths_[*path].to] += below[paths_[*path].from];
    return below;
  }

  const Collective& collective_;
  std::vector<FlowPath> paths_;
  std::vector<std::vector<std::uint32_t>> in_;
};

/// `demand`: what a rank sends per share.
std::vector<FlowPath> paths_of(const FlowNetwork& network, const CapacityGraph& graph, std::int64_t demand) {
  std::vector<FlowPath> paths;
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
    const CapacityGraph::Edge& edge = graph.edge(id);
    for (const PathShare& share : edge.shares) {
      paths.push_back({network.rank_at(edge.tail).value(), network.rank_at(edge.head).value(),
                       make_rational(share.amount, demand), links_along(network, share.arcs)});
    }
  }
  return paths;
}

}  // namespace

Result<std::vector<Arborescence>> gather_trees(const PlanningProblem& problem, const Collective& collective) {
  const Rank root = collective.root;
  if (collective.share_of(root) == collective.share_sum()) return std::vector{Arborescence{root, 1, {}}};
  const FlowNetwork& network = problem.flow_network(cut_direction(collective.kind));
  const GatherFlow rate = gather_flow(network, root, collective.shares, problem.tightest_cut(collective));
  __int128 sum = rate.part * static_cast<__int128>(collective.share_sum());
  for (const __int128 capacity : rate.capacities) sum += capacity;
  if (sum >= std::int64_t{1} << 60U) {
    return fail(ErrorCode::too_large, "the link rates have so fine a common divisor that the flow passes 2^60",
                "round the rates, or use the planner flat");
  }
  CapacityGraph flow = flow_to(network, collective, rate);
  cancel_cycles(flow);
  auto parts = TreeDecomposition(collective, paths_of(network, flow, static_cast<std::int64_t>(rate.part))).run();
  BigInteger units = 1;
  std::vector<Rational> shares;
  for (const auto& part : parts) {
    units = boost::multiprecision::lcm(units, denominator(part.share));
    shares.push_back(part.share);
  }
  if (units > BigInteger(std::int64_t{1} << 60U)) units = std::int64_t{1} << 30U;
  const std::vector<std::int64_t> weights = apportion(shares, units.convert_to<std::int64_t>());
  std::vector<Arborescence> trees;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].tree.weight = weights[i];
    if (weights[i] != 0) trees.push_back(std::move(parts[i].tree));
  }
  return trees;
}

}  // namespace espalier::planners
