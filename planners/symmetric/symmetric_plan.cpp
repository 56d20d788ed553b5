#include "planners/symmetric/symmetric_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "planners/bounds/aggregation_bound.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/symmetric/image_writer.h"
#include "planners/symmetric/name_shifts.h"
#include "planners/symmetric/shift_chain.h"
#include "planners/symmetric/shift_trees.h"
#include "schedule/loads.h"
#include "schedule/trees/tree_schedule.h"
#include "schedule/verify/verify.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

/// Of a star of a packing's trees. More would make lower trees still, and ranks that talk to more others.
constexpr std::uint32_t max_children = 15;

/// Of what NCCL opens between machines: channels, each a ring.
constexpr std::uint32_t max_rings = 16;

/// The shifts of a network, on the graph of its links; null where its ranks are not all alike.
std::shared_ptr<const OrbitGraph> find_shifts(const Topology& topology) {
  ResourceGraph graph = make_resource_graph(topology, false);
  if (auto group = find_name_shifts(topology)) {
    RankSymmetry found{*std::move(group), {}};
    std::vector<Permutation> on_ranks;
    for (const Permutation& generator : found.group.generators()) {
      Permutation& of_ranks = on_ranks.emplace_back();
      for (const std::uint32_t node : graph.rank_nodes) of_ranks.push_back(graph.node_ranks[generator[node]]);
    }
    found.ranks = find_orbits(on_ranks, graph.rank_count());
    return std::make_shared<const OrbitGraph>(make_orbit_graph(std::move(graph), std::move(found)));
  }
  RankSymmetry found = find_rank_symmetry(topology, graph, 1);
  if (found.ranks.count() != 1 || found.group.order() != graph.rank_count()) return nullptr;
  return std::make_shared<const OrbitGraph>(make_orbit_graph(std::move(graph), std::move(found)));
}

/// A collective of which only rank 0's shard is there.
Result<Collective> first_shard(const Collective& collective) {
  if (collective.kind == CollectiveKind::all_reduce) return collective;
  std::vector<std::int64_t> shares(collective.rank_count, 0);
  shares.front() = 1;
  return make_collective(collective.kind, collective.rank_count, std::nullopt, std::move(shares));
}

/// The trees that share what a column carries.
using MakeTrees = std::function<std::vector<ShiftTree>(const Shifts&, const Column&)>;

MakeTrees with_children(std::uint32_t most) {
  return
      [most](const Shifts& shifts, const Column& column) { return std::vector{make_shift_tree(shifts, column, most)}; };
}

/// A schedule of rank 0's shard over the trees of a solution.
Result<Schedule> part_of(const Topology& topology, const Collective& collective, const Shifts& shifts,
                         const ColumnSolution& solution, const MakeTrees& make, const std::string& algorithm) {
  std::vector<ProgramTree> trees;
  for (const auto& [column, amount] : solution.parts) {
    const std::vector<ShiftTree> made = make(shifts, column);
    const Rational share = amount / solution.reached / made.size();
    for (const ShiftTree& tree : made) {
      if (collective.kind != CollectiveKind::reduce_scatter)
        trees.push_back({0, false, share, outward(shifts, tree), {}});
      if (collective.kind != CollectiveKind::all_gather) trees.push_back({0, true, share, inward(shifts, tree), {}});
    }
  }
  const Result<Collective> first = first_shard(collective);
  if (!first) return tl::unexpected(first.error());
  return schedule_from_trees(*first, topology, algorithm,
                             whole_forest(topology, shifts.orbits().graph, trees, Rational(1)));
}

tl::unexpected<Error> unsupported(const std::string& what, const std::string& hint) {
  return fail(ErrorCode::unsupported, what, hint);
}

/// The program over the trees of a network with shifts.
struct Solved {
  std::shared_ptr<const OrbitGraph> orbits;
  ColumnSolution solution;
};

Result<Solved> solve(const Topology& topology, const Collective& collective, const PlanContext& context) {
  if (!has_symmetric_plan(collective)) {
    return unsupported("there is no symmetric plan of this " + std::string(to_string(collective.kind)),
                       "all_gather, reduce_scatter and all_reduce of equal shards have one");
  }
  if (auto reached = check_reachable(topology); !reached) return tl::unexpected(reached.error());
  if (!topology.first_not_relaying().is_none() || computes_in_network(topology)) {
    return unsupported(
        "symmetric plans need ranks that relay and switches that only forward, unlike " + topology.name(), "");
  }
  auto orbits = find_shifts(topology);
  if (!orbits) {
    return unsupported("the ranks of " + topology.name() + " are not all alike, or their names do not count them",
                       "name alike nodes alike, by numbers from 0 on: \"box5.gpu7\"");
  }
  const Shifts shifts(*orbits);
  const ShiftOracle oracle(shifts);
  ColumnLimits limits;
  limits.warm_rounds = static_cast<std::uint32_t>(std::clamp<std::size_t>(orbits->resources.count(), 4, 40));
  limits.on_round = progress_callback(context, to_string(collective.kind),
                                      to_double(Rational(orbits->graph.unit)) * collective.rank_count);
  return Solved{orbits, generate_columns(oracle.program(), oracle, limits)};
}

PricedBound bound_of(const Topology& topology, const Collective& collective, const Solved& solved) {
  const OrbitGraph& orbits = *solved.orbits;
  const Rational shard_time = 1 / (solved.solution.limit * orbits.graph.unit);
  const int halves = collective.kind == CollectiveKind::all_reduce ? 2 : 1;
  PricedBound priced{{shard_time * halves / collective.rank_count, {}, ""},
                     price_shares(topology, orbits, solved.solution.prices)};
  priced.bound.what = binding_text(priced.prices, topology) + " limit the best trees, by exact prices";
  if (!solved.solution.attained) priced.bound = as_floor(std::move(priced.bound), "the optimum was not found");
  return priced;
}

void check(SymmetricPlan& plan, const Topology& topology) {
  plan.part.bound = plan.bound;
  const VerifyReport report = verify(plan.part, topology, 1);
  ESPALIER_CHECK(report.ok(), "a symmetric plan keeps its promise");
}

}  // namespace

bool has_symmetric_plan(const Collective& collective) {
  return collective.shares.empty() && collective.rank_count > 1 &&
         (collective.kind == CollectiveKind::all_gather || collective.kind == CollectiveKind::reduce_scatter ||
          collective.kind == CollectiveKind::all_reduce);
}

Result<PricedBound> symmetric_bound(const Topology& topology, const Collective& collective,
                                    const PlanContext& context) {
  return solve(topology, collective, context).map([&](const Solved& solved) {
    return bound_of(topology, collective, solved);
  });
}

Result<SymmetricPlan> plan_symmetric(const Topology& topology, const Collective& collective,
                                     const PlanContext& context) {
  const Result<Solved> solved = solve(topology, collective, context);
  if (!solved) return tl::unexpected(solved.error());
  if (solved->solution.parts.empty()) {
    return unsupported("the program of " + topology.name() + "'s trees was not solved", "");
  }
  auto part =
      part_of(topology, collective, Shifts(*solved->orbits), solved->solution, with_children(max_children), "packing");
  if (!part) return tl::unexpected(part.error());
  PricedBound priced = bound_of(topology, collective, *solved);
  SymmetricPlan plan{collective,
                     *std::move(part),
                     std::move(priced.bound),
                     std::move(priced.prices),
                     solved->orbits,
                     std::make_shared<SharedFold>()};
  check(plan, topology);
  return plan;
}

namespace {

/// Over one tree per rank, that of the links that take least of the machine's time.
Result<SymmetricPlan> plan_cheapest(const SymmetricPlan& packing, const Topology& topology, const MakeTrees& make,
                                    const std::string& algorithm) {
  const OrbitGraph& orbits = *packing.orbits;
  const Shifts shifts(orbits);
  std::vector<double> prices;
  for (const BigInteger& capacity : orbits.capacity) prices.push_back(1 / capacity.convert_to<double>());
  ColumnSolution solution;
  solution.parts.push_back({ShiftOracle(shifts).cheapest(prices).columns.front(), Rational(1)});
  solution.reached = 1;
  auto part = part_of(topology, packing.collective, shifts, solution, make, algorithm);
  if (!part) return tl::unexpected(part.error());
  SymmetricPlan plan{packing.collective, *std::move(part), packing.bound,
                     packing.prices,     packing.orbits,   packing.folds};
  check(plan, topology);
  return plan;
}

}  // namespace

Result<SymmetricPlan> plan_symmetric_tree(const SymmetricPlan& packing, const Topology& topology) {
  return plan_cheapest(packing, topology, with_children(1), "tree");
}

Result<SymmetricPlan> plan_symmetric_path(const SymmetricPlan& packing, const Topology& topology) {
  const auto make = [](const Shifts& shifts, const Column& column) {
    return std::vector{make_shift_path(shifts, column)};
  };
  return plan_cheapest(packing, topology, make, "ring");
}

Result<SymmetricPlan> plan_symmetric_rings(const SymmetricPlan& packing, const Topology& topology) {
  const auto make = [](const Shifts& shifts, const Column& column) {
    return make_shift_rings(shifts, column, max_rings);
  };
  return plan_cheapest(packing, topology, make, "rings");
}

Rational time_per_byte(const SymmetricPlan& plan, const Topology& topology) {
  const OrbitGraph& orbits = *plan.orbits;
  const Loads loads = compute_loads(plan.part, topology);
  std::vector<UnitSum> units(orbits.resources.count(), 0);
  for (const ResourceGraph::Edge& edge : orbits.graph.edges) {
    units[orbits.resources.of[edge.resources.front()]] += loads.link_units[edge.links.front().index()];
  }
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const std::uint32_t resource = orbits.graph.node_resources[v];
    if (resource != ResourceGraph::no_resource) units[orbits.resources.of[resource]] += loads.node_units[v];
  }
  Rational most = 0;
  for (std::size_t i = 0; i < units.size(); ++i) {
    // All images together load each member of an orbit alike.
    most = std::max(most, Rational(BigInteger(units[i]), orbits.capacity[i] * orbits.graph.unit));
  }
  return most / plan.part.units;
}

Result<Schedule> written_out(const SymmetricPlan& plan, const Topology& topology) {
  const std::uint32_t n = plan.collective.rank_count;
  auto writer = ImageWriter::make(plan, topology);
  if (!writer) return tl::unexpected(writer.error());
  if (plan.part.transfers.size() > max_transfers / n) {
    return fail(ErrorCode::too_large, "the plan of " + std::to_string(n) + " ranks is too large to be written out", "");
  }
  for (std::size_t i = 0; i < plan.part.transfers.size(); ++i) {
    for (std::uint32_t shift = 0; shift < n; ++shift) writer->add(i, shift);
  }
  return writer->take();
}

bool is_alike(const SymmetricPlan& plan, const Topology& topology) {
  const OrbitGraph& orbits = *plan.orbits;
  const ResourceGraph& graph = orbits.graph;
  const Orbits alike = find_orbits(orbits.group.generators(), graph.node_ranks.size() + graph.edges.size());
  const auto link = [&](std::uint32_t edge) -> const Link& { return topology.link(graph.edges[edge].links.front()); };
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const std::uint32_t first = alike.first[alike.of[orbits.edge_number(e)]] - orbits.edge_number(0);
    if (!(link(e).values() == link(first).values())) return false;
  }
  for (std::uint32_t v = 0; v < graph.node_ranks.size(); ++v) {
    const Node& node = topology.node(NodeId(v));
    const Node& first = topology.node(NodeId(alike.first[alike.of[v]]));
    if (node.bandwidth != first.bandwidth || node.reduce_bandwidth != first.reduce_bandwidth) return false;
  }
  return true;
}

ChunkModel chunk_model(const SymmetricPlan& plan, const Topology& topology) {
  return ChunkModel(plan.part, topology).of_whole(to_double(time_per_byte(plan, topology)), plan.collective.rank_count);
}

}  // namespace espalier::planners
