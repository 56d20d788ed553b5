#include "planners/flow_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planners/cut_bound.h"
#include "planners/program/pattern_program.h"
#include "planners/program/resource_graph.h"

namespace espalier {

namespace {

// Past these the program is not solved to the end, only priced a few times.
constexpr std::size_t most_ranks_solved = 128;
constexpr std::size_t most_resources_solved = 1024;
constexpr std::size_t most_edge_visits = 4'000'000;  // of shortest paths, in all rounds of pricing together

/// A collective of distinct blocks.
struct FlowProblem {
  const Topology& topology;
  std::vector<FlowDemand> demands;
  bool mirror_image;               ///< Targets sending to sources is the same problem.
  std::size_t blocks;              ///< A block has S / blocks bytes.
  std::vector<NodeId> gather_cut;  ///< The cut of all_gather: likely the one of this problem, too.
};

/// A node set and the least time per byte that its crossing blocks take.
struct CutTime {
  Rational time_per_byte;
  std::int64_t blocks = 0;
  std::vector<NodeId> nodes;
};

CutTime time_to_leave(const FlowProblem& problem, const std::vector<bool>& inside) {
  CutTime cut;
  const auto is_inside = [&](std::uint32_t rank) { return inside[problem.topology.node_of(Rank(rank)).index()]; };
  for (const FlowDemand& demand : problem.demands) {
    if (!is_inside(demand.source)) continue;
    cut.blocks += std::count_if(demand.targets.begin(), demand.targets.end(), [&](auto t) { return !is_inside(t); });
  }
  BigInteger leaving = 0;
  for (const Link& link : problem.topology.links()) {
    if (inside[link.tail.index()] && !inside[link.head.index()]) leaving += link.bandwidth().bytes_per_second;
  }
  for (std::size_t v = 0; v < inside.size(); ++v) {
    if (inside[v]) cut.nodes.emplace_back(v);
  }
  if (cut.blocks > 0) cut.time_per_byte = Rational(BigInteger(cut.blocks), leaving * problem.blocks);
  return cut;
}

/// Cuts that bind on many machines: every rank alone, every host alone, and one that is given; each both ways.
std::vector<std::vector<bool>> likely_cuts(const Topology& topology, const std::vector<NodeId>& given) {
  std::vector<std::vector<bool>> cuts;
  const auto add = [&](std::vector<bool> inside) {
    std::vector<bool> outside = inside;
    outside.flip();
    cuts.push_back(std::move(inside));
    cuts.push_back(std::move(outside));
  };
  for (std::size_t r = 0; r < topology.rank_count(); ++r) {
    std::vector<bool> inside(topology.node_count(), false);
    inside[topology.node_of(Rank(r)).index()] = true;
    add(std::move(inside));
  }
  std::map<std::string, std::vector<bool>> hosts;
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const std::string& host = topology.node(NodeId(v)).host;
    if (host.empty()) continue;
    hosts.try_emplace(host, topology.node_count(), false).first->second[v] = true;
  }
  for (auto& [host, inside] : hosts) add(std::move(inside));
  std::vector<bool> inside(topology.node_count(), false);
  for (const NodeId node : given) inside[node.index()] = true;
  add(std::move(inside));
  return cuts;
}

/// Sets that a flow's prices suggest: what each rank reaches for nothing.
std::vector<std::vector<bool>> priced_cuts(const ResourceGraph& graph, const std::vector<BigInteger>& prices) {
  std::vector<std::vector<bool>> cuts;
  for (const std::uint32_t rank_node : graph.rank_nodes) {
    std::vector<bool> inside(graph.out_edges.size(), false);
    std::vector<std::uint32_t> open = {rank_node};
    inside[rank_node] = true;
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      for (const std::uint32_t e : graph.out_edges[node]) {
        const ResourceGraph::Edge& edge = graph.edges[e];
        const bool is_free = std::all_of(edge.resources.begin(), edge.resources.end(),
                                         [&](std::uint32_t resource) { return prices[resource] == 0; });
        if (!is_free || inside[edge.head]) continue;
        inside[edge.head] = true;
        open.push_back(edge.head);
      }
    }
    cuts.push_back(std::move(inside));
  }
  return cuts;
}

PatternLimits limits_for(const ResourceGraph& graph) {
  PatternLimits limits;
  const std::size_t visits = graph.edges.size() * graph.rank_count();
  limits.warm_rounds = static_cast<std::uint32_t>(std::min<std::size_t>(limits.warm_rounds, most_edge_visits / visits));
  if (graph.rank_count() > most_ranks_solved || graph.capacity.size() > most_resources_solved) limits.rounds = 0;
  return limits;
}

std::string describe(const FlowProblem& problem, const CutTime& cut, bool exact) {
  const bool one = cut.blocks == 1;
  return fmt::format(
      "{} {}{} bytes {} to leave it{}", cut.blocks,
      problem.blocks == 1 ? (one ? "buffer of S" : "buffers of S") : (one ? "block of S/" : "blocks of S/"),
      problem.blocks == 1 ? "" : std::to_string(problem.blocks), one ? "has" : "have",
      exact ? "" : " (a floor: the network is past the size up to which the optimum is computed)");
}

Bound flow_bound(const FlowProblem& problem) {
  const ResourceGraph graph = make_resource_graph(problem.topology, problem.mirror_image);
  CutTime cut;
  const auto consider = [&](const std::vector<std::vector<bool>>& cuts) {
    for (const std::vector<bool>& inside : cuts) {
      CutTime next = time_to_leave(problem, inside);
      if (next.time_per_byte > cut.time_per_byte) cut = std::move(next);
    }
  };
  consider(likely_cuts(problem.topology, problem.gather_cut));

  const PatternLimits limits = limits_for(graph);
  if (limits.warm_rounds == 0) return {cut.time_per_byte, cut.nodes, describe(problem, cut, false)};
  const FlowOracle oracle(graph, problem.demands);
  const PatternSolution solution = solve_patterns(oracle.program(), oracle, limits);
  const Rational time = 1 / (solution.limit * graph.unit * problem.blocks);
  consider(priced_cuts(graph, solution.prices));
  if (cut.time_per_byte >= time) return {cut.time_per_byte, cut.nodes, describe(problem, cut, solution.attained)};
  return {time,
          {},
          solution.attained ? "the best routing of all blocks at once: a linear program, solved exactly"
                            : "a floor: prices of links that no routing of all blocks can undercut"};
}

/// Solves the problem whose demands `targets_of` gives.
template <class TargetsOf>
Result<Bound> solve(const Topology& topology, bool mirror_image, std::size_t blocks, TargetsOf targets_of) {
  const auto n = static_cast<std::uint32_t>(topology.rank_count());
  auto gather = cut_bound(topology, {CollectiveKind::all_gather, n, Rank()});
  if (!gather || n == 1) return gather;
  FlowProblem problem{topology, {}, mirror_image, blocks, std::move(gather->cut)};
  for (std::uint32_t source = 0; source < n; ++source) problem.demands.push_back({source, targets_of(source)});
  return flow_bound(problem);
}

}  // namespace

Result<Bound> all_to_all_bound(const Topology& topology) {
  const auto n = static_cast<std::uint32_t>(topology.rank_count());
  return solve(topology, true, n, [n](std::uint32_t source) {
    std::vector<std::uint32_t> targets;
    for (std::uint32_t target = 0; target < n; ++target) {
      if (target != source) targets.push_back(target);
    }
    return targets;
  });
}

Result<Bound> send_recv_bound(const Topology& topology) {
  const auto n = static_cast<std::uint32_t>(topology.rank_count());
  return solve(topology, n == 2, 1, [n](std::uint32_t source) { return std::vector{(source + 1) % n}; });
}

}  // namespace espalier
