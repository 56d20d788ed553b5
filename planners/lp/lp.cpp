#include "planners/lp/lp.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "planners/all_reduce_forest.h"
#include "planners/lp/all_reduce_program.h"
#include "planners/lp/flow_program.h"
#include "planners/lp/flow_schedule.h"
#include "planners/lp/single_paths.h"
#include "planners/lp/trees/tree_images.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

/// Whether every demand's blocks are split into parts of the same size.
bool are_split_evenly(const ColumnSolution& solution, std::size_t demands) {
  std::vector<const Rational*> amount(demands, nullptr);
  return std::ranges::all_of(solution.parts, [&](const ColumnSolution::Part& part) {
    const Rational*& first = amount[part.column.group];
    if (first == nullptr) first = &part.amount;
    return *first == part.amount;
  });
}

/// Blocks that need not be split to carry as much are not. But few that are split evenly stay so: that costs little and
/// spreads what meets at a link.
void take_single_paths(FlowProgram& program) {
  constexpr std::uint32_t many_ranks = 64;
  ColumnSolution& solution = program.solution;
  const ResourceGraph& graph = program.orbits->graph;
  if (graph.mirrored || solution.parts.size() == program.demands.size()) return;
  if (graph.rank_count() < many_ranks && are_split_evenly(solution, program.demands.size())) return;
  auto single = find_single_paths(*program.orbits, program.demands, solution.limit);
  if (!single || single->reached < solution.reached) return;
  solution.reached = std::move(single->reached);
  solution.parts = std::move(single->parts);
}

/// The program of distinct blocks, solved, at least nearly.
Result<FlowProgram> flow_program(const PlanningProblem& problem, const Collective& collective,
                                 const PlanContext& context) {
  constexpr std::size_t max_ranks = 1024;
  constexpr std::size_t max_exact_rank_orbits = 64;
  constexpr std::size_t max_exact_resource_orbits = 1024;
  const Error too_large = {ErrorCode::too_large,
                           "the network is past the size up to which the best routes are computed",
                           "use the planner pairwise"};
  const Topology& topology = problem.topology();
  if (topology.rank_count() > max_ranks) return tl::unexpected(too_large);
  const FlowDemands flows = flow_demands(collective);
  const auto orbits = problem.orbit_graph(false, flows.keeps_symmetry ? Symmetry::any : Symmetry::none);
  const bool is_small =
      orbits->ranks.count() <= max_exact_rank_orbits && orbits->resources.count() <= max_exact_resource_orbits;
  if (!is_small && !is_near_flow_size(*orbits)) return tl::unexpected(too_large);
  ColumnLimits limits;
  if (!is_small) limits.gap = near_flow_gap;
  FlowProgram program = solve_flow(orbits, flows, limits, context);
  if (program.solution.parts.empty()) {
    return fail(ErrorCode::unsupported, "the best routes were not found within the limits", "use the planner pairwise");
  }
  return program;
}

Result<Forest> flow_forest(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  auto program = flow_program(problem, collective, context);
  if (!program) return tl::unexpected(program.error());
  if (collective.kind == CollectiveKind::all_to_all) take_single_paths(*program);
  return lift(problem.topology(), *program->orbits, program->demands, program->solution);
}

/// Blocks of a traffic matrix go along paths of their own.
Result<Schedule> plan_matrix(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  auto program = flow_program(problem, collective, context);
  if (!program) return tl::unexpected(program.error());
  return schedule_flow(problem.topology(), collective, *program);
}

/// Trees that are near the optimum packing has as well.
Result<Forest> exact_forest(const PlanningProblem& problem, const PlanContext& context) {
  PlanContext with_solution = context;
  const bool is_possible = check_reachable(problem.topology()) && problem.topology().rank_count() > 1;
  if (is_possible && !context.solution) with_solution.solution = solve_all_reduce(problem, context);
  if (with_solution.solution && with_solution.solution->is_near && !with_solution.solution->solution.attained) {
    return fail(ErrorCode::too_large, "the network is past the size up to which the best trees are computed",
                "use the planner packing");
  }
  return all_reduce_forest(problem, with_solution);
}

}  // namespace

Result<Schedule> plan_lp(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  const bool is_flow = collective.kind == CollectiveKind::all_to_all || collective.kind == CollectiveKind::send_recv;
  if (!is_flow && collective.kind != CollectiveKind::all_reduce) {
    return fail(ErrorCode::unsupported, "lp plans no " + std::string(to_string(collective.kind)),
                "use the planner packing, which reaches its bound");
  }
  const Topology& topology = problem.topology();
  if (topology.rank_count() == 1) return schedule_from_trees(collective, topology, "lp", {});
  if (collective.has_matrix()) return plan_matrix(problem, collective, context);
  const Result<Forest> forest = is_flow ? flow_forest(problem, collective, context) : exact_forest(problem, context);
  if (!forest) return tl::unexpected(forest.error());
  return schedule_from_trees(collective, topology, "lp", *forest);
}

}  // namespace espalier::planners
