#include "planners/lp/all_reduce_program.h"

#include <utility>

#include "planners/lp/trees/tree_memory.h"

namespace espalier::planners {

std::shared_ptr<const AllReduceProgram> solve_all_reduce(const PlanningProblem& problem, const PlanContext& context) {
  const Topology& topology = problem.topology();
  constexpr std::size_t most_ranks = 1024;
  constexpr std::size_t most_rank_orbits = 64;
  constexpr std::size_t most_resource_orbits = 640;
  constexpr std::uint32_t few_groups = 8;
  constexpr std::uint32_t most_warm_trees = 288;
  constexpr std::uint32_t least_warm_rounds = 10;
  if (topology.rank_count() > most_ranks || topology.first_relaying().is_none()) return nullptr;
  AllReduceProgram program{problem.orbit_graph(true, Symmetry::any), {}, {}, 0};
  const OrbitGraph& orbits = *program.orbits;
  if (orbits.ranks.count() > most_rank_orbits || orbits.resources.count() > most_resource_orbits) return nullptr;
  program.groups = all_reduce_groups(orbits);
  const TreeOracle oracle(orbits, program.groups);
  ColumnLimits limits;
  limits.shallow = true;
  // With many groups every round brings many trees, and Clp is what takes time.
  const auto groups = static_cast<std::uint32_t>(program.groups.groups.size());
  limits.cheapest_first = groups > few_groups;
  limits.warm_rounds = std::clamp(most_warm_trees / groups, least_warm_rounds, limits.warm_rounds);
  limits.on_round = progress_callback(context, "all_reduce", orbits.graph.unit.convert_to<double>());
  std::vector<Column> seeds;
  if (context.known != nullptr) seeds = context.known->seeds(topology, orbits, oracle);
  limits.seeds = seeds;
  if (!seeds.empty()) limits.warm_rounds = std::min(limits.warm_rounds, seeded_warm_rounds);
  program.solution = generate_columns(oracle.program(), oracle, limits);
  program.time_per_byte = 1 / (program.solution.limit * orbits.graph.unit);
  return std::make_shared<const AllReduceProgram>(std::move(program));
}

}  // namespace espalier::planners
