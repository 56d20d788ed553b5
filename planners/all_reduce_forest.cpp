#include "planners/all_reduce_forest.h"

#include "planners/bounds/cut_bound.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/lp/trees/tree_images.h"
#include "planners/packing/improve/few_trees.h"
#include "topology/reachable.h"

namespace espalier::planners {

Result<Forest> all_reduce_forest(const PlanningProblem& problem, const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (auto reached = check_reachable(topology); !reached) return tl::unexpected(reached.error());
  if (topology.rank_count() == 1) {
    return fail(ErrorCode::unsupported, "one rank: no trees are needed", "take a schedule without transfers");
  }
  if (auto possible = check_somebody_adds(topology); !possible) return tl::unexpected(possible.error());
  const auto program = context.solution != nullptr ? context.solution : solve_all_reduce(problem, context);
  if (!program) {
    return fail(ErrorCode::too_large, "the network is past the size up to which the best trees are computed",
                "use reduce-scatter followed by all-gather");
  }
  if (program->is_near) return lift(topology, *program->orbits, program->groups, program->solution);
  if (!program->solution.attained) {
    return fail(ErrorCode::unsupported, "the best trees were not found within the limits",
                "use reduce-scatter followed by all-gather");
  }
  const ColumnSolution solution = with_fewer_trees(*program->orbits, TreeOracle(*program->orbits, program->groups),
                                                   program->solution, {.enough = 2, .max_height = 0});
  return lift(topology, *program->orbits, program->groups, solution);
}

}  // namespace espalier::planners
