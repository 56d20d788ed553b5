#include <optional>
#include <utility>

#include "planners/classic/classic.h"
#include "planners/classic/partners.h"
#include "planners/graph/logical_graph.h"
#include "schedule/trees/tree_schedule.h"
#include "schedule/trees/tree_shape.h"

namespace espalier::planners {

namespace {

constexpr std::uint32_t max_centers = 64;  ///< Ranks that are tried.

}  // namespace

Result<Schedule> plan_star(const PlanningProblem& problem, const Collective& collective) {
  if (collective.kind != CollectiveKind::all_reduce) {
    return fail(ErrorCode::unsupported, "star does not plan " + std::string(to_string(collective.kind)),
                "flat makes the same of broadcast, reduce, gather and scatter");
  }
  const Topology& topology = problem.topology();
  const LogicalGraph& inwards = problem.logical_graph(Direction::reversed, small_message, 1);
  const LogicalGraph& outwards = problem.logical_graph(Direction::forward, small_message, 1);
  std::optional<Forest> best;
  std::uint32_t least = 0;
  std::uint32_t tried = 0;
  for (std::uint32_t i = 0; i < collective.rank_count && tried < max_centers; ++i) {
    if (!topology.may_relay(Rank(i))) continue;  // The center sends on what it added up.
    ++tried;
    LinkLoads loads(topology.link_count(), 0);
    Forest forest;
    forest.in_trees.push_back(cheapest_tree(inwards, Rank(i), true, 1, loads));
    forest.out_trees.push_back(cheapest_tree(outwards, Rank(i), false, 1, loads));
    const std::uint32_t height = height_of(forest.in_trees.front(), collective.rank_count) +
                                 height_of(forest.out_trees.front(), collective.rank_count);
    if (best && height >= least) continue;
    least = height;
    best = std::move(forest);
  }
  if (!best) return fail(ErrorCode::unsupported, "star needs a rank that may relay to be its center", "use innetwork");
  return schedule_from_trees(collective, topology, "star", *best);
}

}  // namespace espalier::planners
