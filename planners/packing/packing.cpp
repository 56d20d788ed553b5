#include "planners/packing/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "planners/all_reduce_forest.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/packing/find/gather_trees.h"
#include "planners/packing/input_exchange.h"
#include "planners/packing/pack_roots.h"
#include "planners/packing/problem.h"
#include "schedule/loads.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/cables.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

using TreesOrError = Result<std::vector<Arborescence>>;

/// What each rank roots, by rank; empty where all root the same. Of an all_reduce only ranks that may relay are roots.
std::vector<std::int64_t> shares_of(const Topology& topology, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_reduce || topology.first_not_relaying().is_none()) {
    return collective.shares;
  }
  std::vector<std::int64_t> shares;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) shares.push_back(topology.may_relay(Rank(i)) ? 1 : 0);
  return shares;
}

/// Trees for a collective: out-trees when data flows along the links away from the roots, in-trees otherwise.
TreesOrError trees_of(const PlanningProblem& problem, const Collective& collective, Direction direction,
                      const PlanContext& context) {
  if (collective.kind == CollectiveKind::gather || collective.kind == CollectiveKind::scatter) {
    return gather_trees(problem, collective);
  }
  const Rank root = has_root(collective.kind) ? collective.root : Rank();
  const std::vector<std::int64_t> shares = shares_of(problem.topology(), collective);
  return pack_roots(make_problem(problem, direction, root, shares, context));
}

/// The link back of every link, where all cables carry the same in both directions.
std::optional<std::vector<LinkId>> links_back(const Topology& topology) {
  std::vector<LinkId> back(topology.link_count());
  for (const Cable& cable : find_cables(topology)) {
    if (cable.back.is_none()) return std::nullopt;
    if (topology.link(cable.there).bandwidth() != topology.link(cable.back).bandwidth()) return std::nullopt;
    back[cable.there.index()] = cable.back;
    back[cable.back.index()] = cable.there;
  }
  return back;
}

/// The same trees with the data going against them.
std::vector<Arborescence> reversed_trees(std::vector<Arborescence> trees, const std::vector<LinkId>& back) {
  for (Arborescence& tree : trees) {
    for (TreeEdge& edge : tree.edges) {
      std::reverse(edge.links.begin(), edge.links.end());
      for (LinkId& link : edge.links) link = back[link.index()];
    }
  }
  return trees;
}

/// In which direction the network is read for the collective's in-trees or out-trees. A packing of out-trees becomes
/// one of in-trees on the reversed network; a flow to the root is one of in-trees already. On duplex cables all_reduce
/// needs one packing only, reversed for the other half.
Result<Forest> forest_of(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  const bool is_all_reduce = collective.kind == CollectiveKind::all_reduce;
  const bool needs_in = reduces(collective.kind) || collective.kind == CollectiveKind::gather;
  const auto back = is_all_reduce ? links_back(problem.topology()) : std::nullopt;
  Forest forest;
  if (!needs_in || is_all_reduce) {
    TreesOrError trees = trees_of(problem, collective, Direction::forward, context);
    if (!trees) return tl::unexpected(trees.error());
    forest.out_trees = *std::move(trees);
  }
  if (back) {
    forest.in_trees = reversed_trees(forest.out_trees, *back);
  } else if (needs_in) {
    TreesOrError trees = trees_of(problem, collective, Direction::reversed, context);
    if (!trees) return tl::unexpected(trees.error());
    forest.in_trees = *std::move(trees);
  }
  return forest;
}

Result<Schedule> schedule_of(const Topology& topology, const Collective& collective, const Result<Forest>& forest) {
  if (!forest) return tl::unexpected(forest.error());
  return schedule_from_trees(collective, topology, "packing", *forest);
}

/// Where trees are only near the optimum, halves that might gain less than this are not planned, which takes long
/// there.
Rational near_enough() { return make_rational(101, 100); }

/// A reduce-scatter and an all-gather where these are as fast as any, which they are on machines without a weak rank;
/// else the trees of the linear program, where they load the network less. Where no rank relays, all send each other
/// their inputs.
Result<Schedule> plan_all_reduce(const PlanningProblem& problem, const Collective& collective,
                                 const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (topology.first_relaying().is_none()) {  // No rank is a root of trees: its sum may not leave it.
    const Collective gathering{CollectiveKind::all_gather, collective.rank_count, Rank()};
    return plan_packing(problem, gathering, context).map(&exchange_inputs);
  }
  const auto best_pairs = [&] { return schedule_of(topology, collective, all_reduce_forest(problem, context)); };
  const auto time_of = [&](const Schedule& schedule) { return compute_loads(schedule, topology).time_per_byte; };
  const auto& floors = problem.floors();
  const auto& program = context.solution;
  if (floors && program && !program->solution.parts.empty()) {
    const Rational enough = floors->reduce_scatter_all_gather * (program->is_near ? near_enough() : 1);
    const bool halves_lose = 1 / (program->solution.reached * program->orbits->graph.unit) < enough;
    if (halves_lose) {
      Result<Schedule> trees = best_pairs();
      if (trees && time_of(*trees) < enough) return trees;
    }
  }
  Result<Schedule> halves = schedule_of(topology, collective, forest_of(problem, collective, context));
  if (halves && floors && floors->best().time_per_byte == time_of(*halves)) return halves;
  if (halves && program && program->time_per_byte == time_of(*halves)) return halves;
  Result<Schedule> trees = best_pairs();
  const bool is_better = trees && (!halves || time_of(*trees) < time_of(*halves));
  return is_better ? std::move(trees) : std::move(halves);
}

}  // namespace

Result<Schedule> plan_packing(const PlanningProblem& problem, const Collective& collective,
                              const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (collective.kind == CollectiveKind::all_to_all || collective.kind == CollectiveKind::send_recv) {
    return fail(ErrorCode::unsupported,
                fmt::format("packing plans no {}: its parts travel between pairs", to_string(collective.kind)),
                "use the planner pairwise");
  }
  if (auto reached = check_reachable(topology); !reached) return tl::unexpected(reached.error());
  if (topology.rank_count() == 1) return schedule_of(topology, collective, Forest{});
  if (collective.kind == CollectiveKind::all_reduce) return plan_all_reduce(problem, collective, context);
  return schedule_of(topology, collective, forest_of(problem, collective, context));
}

}  // namespace espalier::planners
