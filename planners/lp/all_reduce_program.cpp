#include "planners/lp/all_reduce_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "planners/lp/few_columns.h"
#include "planners/lp/trees/even_trees.h"
#include "planners/lp/trees/spanning_limit.h"
#include "planners/lp/trees/tree_memory.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_rank_orbits = 64;
constexpr std::size_t max_resource_orbits = 640;

/// Trees of equal weight and the best limit that is known: by prices, where these are quickly found, or one of the
/// floors that hold for all schedules.
AllReduceProgram near_program(const PlanningProblem& problem, const PlanContext& context) {
  AllReduceProgram program{.orbits = problem.orbit_graph(true, Symmetry::none), .is_near = true};
  const ResourceGraph& graph = program.orbits->graph;
  const std::uint32_t root = widest_rank(graph);
  program.groups = {{{root, false, 0, 1, 1}}, Sharing::free};
  if (!graph.mirrored) program.groups.groups.push_back({root, true, 0, 1, 1});
  const TreeOracle oracle(*program.orbits, program.groups);
  ColumnSolution& solution = program.solution;
  const auto& floors = problem.floors();
  if (floors) solution.limit = 1 / (floors->best().time_per_byte * graph.unit);
  if (graph.mirrored) {
    SpanningLimit limit = spanning_limit(*program.orbits, oracle);
    if (!floors || limit.throughput < solution.limit) solution.limit = std::move(limit.throughput);
    if (solution.limit == limit.throughput) solution.prices = std::move(limit.prices);
  }
  program.time_per_byte = 1 / (solution.limit * graph.unit);
  const auto on_round = progress_callback(context, "all_reduce", graph.unit.convert_to<double>());
  const auto limit = solution.limit.convert_to<double>();
  std::uint32_t rounds = 0;
  const EvenTrees trees = find_even_trees(graph, root, limit, [&](const EvenTrees& better) {
    const std::size_t columns = better.out_trees.size() + better.in_trees.size();
    if (on_round) on_round({++rounds, columns, better.throughput, limit});
  });
  std::vector<Column> columns;
  for (const auto& edges : trees.out_trees) columns.push_back(oracle.column(0, edges));
  for (const auto& edges : trees.in_trees) columns.push_back(oracle.column(1, edges));
  const std::vector<std::int64_t> shares(columns.size(), 1);
  auto packing = pack_shares(oracle.program(), columns, shares, static_cast<std::int64_t>(trees.out_trees.size()));
  solution.reached = std::move(packing->reached);
  solution.parts = std::move(packing->parts);
  solution.attained = solution.reached == solution.limit;
  return program;
}

}  // namespace

std::shared_ptr<const AllReduceProgram> solve_all_reduce(const PlanningProblem& problem, const PlanContext& context) {
  const Topology& topology = problem.topology();
  constexpr std::size_t max_ranks = 1024;
  constexpr std::uint32_t few_groups = 8;
  constexpr std::uint32_t max_warm_trees = 288;
  constexpr std::uint32_t min_warm_rounds = 10;
  if (topology.rank_count() > max_ranks || topology.first_relaying().is_none()) return nullptr;
  AllReduceProgram program{.orbits = problem.orbit_graph(true, Symmetry::any)};
  const OrbitGraph& orbits = *program.orbits;
  if (orbits.ranks.count() > max_rank_orbits || orbits.resources.count() > max_resource_orbits) {
    return std::make_shared<const AllReduceProgram>(near_program(problem, context));
  }
  program.groups = all_reduce_groups(orbits);
  const TreeOracle oracle(orbits, program.groups);
  ColumnLimits limits;
  limits.shallow = true;
  // With many groups every round brings many trees, and Clp is what takes time.
  const auto groups = static_cast<std::uint32_t>(program.groups.groups.size());
  limits.cheapest_first = groups > few_groups;
  limits.warm_rounds = std::clamp(max_warm_trees / groups, min_warm_rounds, limits.warm_rounds);
  limits.on_round = progress_callback(context, "all_reduce", orbits.graph.unit.convert_to<double>());
  std::vector<Column> seeds;
  if (context.known != nullptr) seeds = context.known->seeds(topology, orbits, oracle);
  limits.seeds = seeds;
  if (!seeds.empty()) limits.warm_rounds = std::min(limits.warm_rounds, seeded_warm_rounds);
  program.solution = generate_columns(oracle.program(), oracle, limits);
  const bool has_limit = program.solution.limit > 0;
  if (has_limit) program.time_per_byte = 1 / (program.solution.limit * orbits.graph.unit);
  if (!program.solution.attained) {
    AllReduceProgram near = near_program(problem, context);
    if (!has_limit || near.time_per_byte >= program.time_per_byte) program = std::move(near);
  }
  return std::make_shared<const AllReduceProgram>(std::move(program));
}

}  // namespace espalier::planners
