#include "planners/bounds/flow_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planners/blocks/balance.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/matrix_cuts.h"
#include "planners/lp/flow_program.h"
#include "schedule/loads.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

// Past these the program is solved until its solution is near, and past near_flow_size only priced a few times.
constexpr std::size_t max_rank_orbits = 128;
constexpr std::size_t max_resource_orbits = 2048;
constexpr std::size_t max_edge_visits = 4'000'000;  // of shortest paths, in all rounds of pricing together

/// A node set and the least time per byte that its crossing blocks take.
struct CutTime {
  Rational time_per_byte;
  std::int64_t blocks = 0;
  std::vector<NodeId> nodes;
};

CutTime time_to_leave(const Topology& topology, const FlowDemands& flows, const std::vector<bool>& inside) {
  CutTime cut;
  const auto is_inside = [&](std::uint32_t rank) { return inside[topology.node_of(Rank(rank)).index()]; };
  const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
  std::int64_t ranks_outside = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) ranks_outside += is_inside(rank) ? 0 : 1;
  for (const FlowDemand& demand : flows.demands) {
    if (!is_inside(demand.source)) continue;
    if (demand.targets.size() + 1 == ranks) {  // all others
      cut.blocks += ranks_outside;
      continue;
    }
    cut.blocks += std::count_if(demand.targets.begin(), demand.targets.end(), [&](auto t) { return !is_inside(t); });
  }
  BigInteger leaving = 0;
  for (const Link& link : topology.links()) {
    if (inside[link.tail.index()] && !inside[link.head.index()]) leaving += link.bandwidth().bytes_per_second;
  }
  for (std::size_t v = 0; v < inside.size(); ++v) {
    if (inside[v]) cut.nodes.emplace_back(v);
  }
  if (cut.blocks > 0) cut.time_per_byte = Rational(BigInteger(cut.blocks), leaving * flows.blocks_per_buffer);
  return cut;
}

/// Cuts that bind on many machines: every rank alone, every host alone, and one that is given; each in both directions.
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
std::vector<std::vector<bool>> priced_cuts(const OrbitGraph& orbits, const std::vector<BigInteger>& prices) {
  const ResourceGraph& graph = orbits.graph;
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
        const bool is_free = std::all_of(edge.resources.begin(), edge.resources.end(), [&](std::uint32_t resource) {
          return prices[orbits.resources.of[resource]] == 0;
        });
        if (!is_free || inside[edge.head]) continue;
        inside[edge.head] = true;
        open.push_back(edge.head);
      }
    }
    cuts.push_back(std::move(inside));
  }
  return cuts;
}

ColumnLimits limits_for(const OrbitGraph& orbits) {
  ColumnLimits limits;
  const std::size_t visits = orbits.graph.edges.size() * orbits.ranks.count();
  limits.warm_rounds = static_cast<std::uint32_t>(std::min<std::size_t>(limits.warm_rounds, max_edge_visits / visits));
  if (orbits.ranks.count() > max_rank_orbits || orbits.resources.count() > max_resource_orbits) {
    limits.gap = near_flow_gap;
    if (!is_near_flow_size(orbits)) limits.rounds = 0;
  }
  return limits;
}

std::string describe(const FlowDemands& flows, const CutTime& cut) {
  const bool one = cut.blocks == 1;
  const std::string what = flows.blocks_per_buffer == 1
                               ? fmt::format("buffer{} of S", one ? "" : "s")
                               : fmt::format("block{} of S/{}", one ? "" : "s", flows.blocks_per_buffer);
  return fmt::format("{} {} bytes {} to leave it", cut.blocks, what, one ? "has" : "have");
}

constexpr const char* past_flow_size = "the network is past the size up to which the optimum is computed";

PricedBound flow_bound(const PlanningProblem& problem, const FlowDemands& flows, const std::vector<NodeId>& gather_cut,
                       const PlanContext& context) {
  const Topology& topology = problem.topology();
  CutTime cut;
  const auto consider = [&](const std::vector<std::vector<bool>>& cuts) {
    for (const std::vector<bool>& inside : cuts) {
      CutTime next = time_to_leave(topology, flows, inside);
      if (next.time_per_byte > cut.time_per_byte) cut = std::move(next);
    }
  };
  consider(likely_cuts(topology, gather_cut));
  const auto orbits = problem.orbit_graph(flows.mirrors_itself, flows.keeps_symmetry ? Symmetry::any : Symmetry::none);
  const ColumnLimits limits = limits_for(*orbits);
  if (limits.warm_rounds == 0)
    return {as_floor({cut.time_per_byte, cut.nodes, describe(flows, cut)}, past_flow_size), {}};
  const FlowProgram program = solve_flow(orbits, flows, limits, context);
  consider(priced_cuts(*program.orbits, program.solution.prices));
  const bool exact = program.solution.attained;
  if (cut.time_per_byte >= program.time_per_byte) {
    Bound bound{cut.time_per_byte, cut.nodes, describe(flows, cut)};
    return {exact ? std::move(bound) : as_floor(std::move(bound), past_flow_size), {}};
  }
  Bound bound{program.time_per_byte, {}, "the best routing of all blocks at once, by exact prices"};
  if (!exact)
    bound = as_floor({program.time_per_byte, {}, "any routing of all blocks, by prices"}, "the optimum was not found");
  return {std::move(bound), price_shares(topology, *program.orbits, program.solution.prices)};
}

Result<PricedBound> bound_of(const PlanningProblem& problem, CollectiveKind kind, const PlanContext& context) {
  const auto n = static_cast<std::uint32_t>(problem.topology().rank_count());
  auto gather = cut_bound(problem, {CollectiveKind::all_gather, n, Rank()});
  if (!gather) return tl::unexpected(gather.error());
  if (n == 1) return PricedBound{*std::move(gather), {}};
  return flow_bound(problem, flow_demands({kind, n, Rank()}), gather->cut, context);
}

/// Who is so much longer than a bound reaches it: units are whole.
constexpr double rounding = 1e-6;

/// How much longer than a cut a balanced plan takes, in parts of it; nothing where there is none.
std::optional<double> excess_of_balance(const PlanningProblem& problem, const Collective& collective,
                                        const Rational& cut_time) {
  const auto plan = plan_balance(problem, collective, Splitting::exact);
  if (!plan) return std::nullopt;
  return to_double(compute_loads(*plan, problem.topology()).time_per_byte / cut_time) - 1;
}

std::string describe(const BlockCut& cut) {
  return fmt::format("{:.4g} times S has to leave it", to_double(cut.crossing));
}

/// A matrix's program, solved; its limit is the bound where it passes the cuts.
PricedBound program_bound(const PlanningProblem& problem, const Collective& collective, BlockCut cut,
                          const ColumnLimits& limits, const PlanContext& context) {
  const FlowDemands flows = flow_demands(collective);
  const FlowProgram program = solve_flow(problem.orbit_graph(false, Symmetry::none), flows, limits, context);
  for (const std::vector<bool>& inside : priced_cuts(*program.orbits, program.solution.prices)) {
    BlockCut next = block_cut(problem.topology(), collective, inside);
    if (next.time_per_byte > cut.time_per_byte) cut = std::move(next);
  }
  const bool by_cut = cut.time_per_byte >= program.time_per_byte;
  Bound bound{program.time_per_byte, {}, "the best routing of all blocks at once, by exact prices"};
  if (by_cut) bound = {cut.time_per_byte, cut.nodes, describe(cut)};
  if (!program.solution.attained) {
    const Rational reached = program.solution.reached;
    const double excess =
        reached > 0 ? to_double(program.time_per_byte * program.solution.limit / reached / bound.time_per_byte) - 1 : 1;
    const std::string why =
        reached > 0 ? fmt::format("a routing takes {:.2g} % longer", 100 * excess) : "the optimum was not found";
    if (excess > rounding) bound = as_floor(std::move(bound), why);
  }
  if (by_cut) return {std::move(bound), {}};
  return {std::move(bound), price_shares(problem.topology(), *program.orbits, program.solution.prices)};
}

}  // namespace

Result<PricedBound> matrix_bound(const PlanningProblem& problem, const Collective& collective,
                                 const PlanContext& context) {
  constexpr std::uint32_t max_exact_ranks = 64;
  if (const auto cut_off = find_unreachable(problem.topology())) {
    return fail(ErrorCode::infeasible, describe_unreachable(problem.topology(), *cut_off),
                "add the missing links, or mark nodes that take no part with rank: false");
  }
  BlockCut cut = tightest_block_cut(problem.topology(), collective);
  Bound by_cut{cut.time_per_byte, cut.nodes, describe(cut)};
  if (cut.time_per_byte == 0) return PricedBound{Bound{Rational(0), {}, "nothing has to move"}, {}};
  const std::optional<double> excess = excess_of_balance(problem, collective, cut.time_per_byte);
  if (excess && *excess <= rounding) return PricedBound{std::move(by_cut), {}};
  const auto orbits = problem.orbit_graph(false, Symmetry::none);
  ColumnLimits limits = limits_for(*orbits);
  if (collective.rank_count > max_exact_ranks) limits.gap = near_flow_gap;
  if (limits.rounds == 0 || limits.warm_rounds == 0) {
    const std::string why =
        excess ? fmt::format("a balanced plan takes {:.2g} % longer", 100 * *excess) : std::string(past_flow_size);
    return PricedBound{as_floor(std::move(by_cut), why), {}};
  }
  return program_bound(problem, collective, std::move(cut), limits, context);
}

Result<PricedBound> all_to_all_bound(const PlanningProblem& problem, const PlanContext& context) {
  return bound_of(problem, CollectiveKind::all_to_all, context);
}

Result<PricedBound> send_recv_bound(const PlanningProblem& problem, const PlanContext& context) {
  return bound_of(problem, CollectiveKind::send_recv, context);
}

}  // namespace espalier::planners
