#include "planners/classic/classic.h"
#include "planners/classic/partners.h"
#include "planners/graph/logical_graph.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

namespace {

constexpr std::uint32_t max_flat_ranks = 1024;  ///< N trees of N edges: a million transfers and their routes.

std::vector<Arborescence> make_trees(const PlanningProblem& problem, const Collective& collective, bool inwards) {
  const Topology& topology = problem.topology();
  const std::uint32_t variants = collective.rank_count <= 64 ? 4 : 1;
  const Direction direction = inwards ? Direction::reversed : Direction::forward;
  const LogicalGraph& graph = problem.logical_graph(direction, small_message, variants);
  LinkLoads loads(topology.link_count(), 0);
  std::vector<Arborescence> trees;
  for (std::uint32_t i = 0; i < collective.rank_count; ++i) {
    if (!collective.root.is_none() && collective.root != Rank(i)) continue;
    // The root of a part of an all_reduce sends on what it added up.
    if (collective.kind == CollectiveKind::all_reduce && !topology.may_relay(Rank(i))) continue;
    trees.push_back(cheapest_tree(graph, Rank(i), inwards, 1, loads));
  }
  return trees;
}

}  // namespace

Result<Schedule> plan_flat(const PlanningProblem& problem, const Collective& collective) {
  const Topology& topology = problem.topology();
  const CollectiveKind kind = collective.kind;
  if (!has_root(kind) && collective.rank_count > max_flat_ranks) {
    return fail(ErrorCode::too_large,
                "flat sends from each of " + std::to_string(collective.rank_count) +
                    " ranks to all others; its limit is " + std::to_string(max_flat_ranks),
                slices_have_destination(kind) ? "use pairwise" : "use ring, recursive or bruck");
  }
  if (kind == CollectiveKind::all_reduce && collective.rank_count > 1 && topology.first_relaying().is_none()) {
    return fail(ErrorCode::unsupported, "no rank may relay, and flat adds up at ranks alone",
                "use packing or oneshot, or innetwork where a switch adds and copies");
  }
  const bool inwards = reduces(kind) || kind == CollectiveKind::gather;
  const bool outwards = !inwards || kind == CollectiveKind::all_reduce;
  Forest forest;
  if (inwards) forest.in_trees = make_trees(problem, collective, true);
  if (outwards) forest.out_trees = make_trees(problem, collective, false);
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, topology, "flat", *dealt);
}

}  // namespace espalier::planners
