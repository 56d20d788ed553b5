#include "planners/packing/find/tree_program.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "planners/bounds/bound_prices.h"
#include "planners/bounds/cut_bound.h"
#include "planners/lp/few_columns.h"
#include "planners/lp/trees/tree_images.h"
#include "planners/lp/trees/tree_memory.h"
#include "planners/packing/improve/few_trees.h"

namespace espalier::planners {

namespace {

/// What a program of trees of any depth may cost (ColumnSolution::work), and one of shallow trees, which are variants
/// that a choice can do without. Whole shipped machines take less than 10^6; 32 ranks of 16 links each with one of them
/// gone up to 4 x 10^9, a second for every 10^9.
constexpr std::int64_t max_free_work = 3'000'000'000;
constexpr std::int64_t max_shallow_work = 300'000'000;

/// Past these the program takes longer than splitting switches does.
constexpr std::size_t max_program_ranks = 4096;
constexpr std::size_t max_tree_rank_orbits = 32;
constexpr std::size_t max_tree_resource_orbits = 320;
constexpr std::size_t max_small_resource_orbits = 16;
constexpr std::int64_t max_share_sum = 1'000'000;  // weights stay within max_units

}  // namespace

std::optional<TreeProgram> TreeProgram::make(const PlanningProblem& problem, Direction direction, Rank root,
                                             Symmetry symmetry, std::span<const std::int64_t> shares,
                                             const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (topology.rank_count() > max_program_ranks) return std::nullopt;
  if (std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) > max_share_sum) return std::nullopt;
  auto orbits = problem.orbit_graph(false, root.is_none() ? symmetry : Symmetry::none, shares);
  // Where ranks must not relay no other finder plans, and where the cut may be out of reach none knows the best.
  const bool is_needed = !topology.first_not_relaying().is_none() || !trees_reach_cuts(problem);
  const std::size_t more = is_needed ? 2 : 1;
  if (orbits->resources.count() > max_tree_resource_orbits * more) return std::nullopt;
  if (root.is_none() && orbits->ranks.count() > max_tree_rank_orbits * more) return std::nullopt;
  const bool inward = direction == Direction::reversed;
  TreeGroups groups =
      root.is_none() ? sharded_groups(*orbits, inward, shares) : single_root_group(root.value(), inward);
  return TreeProgram(topology, std::move(orbits), std::move(groups), !root.is_none(), context);
}

ColumnLimits TreeProgram::limits() const {
  ColumnLimits limits;
  limits.warm_rounds = static_cast<std::uint32_t>(std::clamp<std::size_t>(orbits_->resources.count(), 4, 40));
  limits.on_round = progress_callback(*context_, collective_name(), bytes_per_unit());
  return limits;
}

ProgramRate TreeProgram::optimum() const {
  const TreeOracle trees = oracle(0);
  const ColumnSolution solution = generate_columns(trees.program(), trees, limits());
  return {solution.limit * orbits_->graph.unit, solution.attained, price_shares(*topology_, *orbits_, solution.prices)};
}

ColumnSolution TreeProgram::with_fewer_trees(const ColumnSolution& solution) const {
  // Where the program is small, fewer trees cost little to find and save the time to write them out.
  const bool is_small = groups_.groups.size() == 1 && orbits_->resources.count() <= max_small_resource_orbits;
  return planners::with_fewer_trees(*orbits_, oracle(0), solution, {.enough = is_small ? 2U : 4U, .max_height = 0});
}

ColumnSolution TreeProgram::solve(std::uint32_t max_height, std::span<const Arborescence> known) const {
  const TreeOracle trees = oracle(max_height);
  ColumnLimits limits = this->limits();
  limits.shallow = true;
  limits.max_height = max_height;
  limits.max_work = max_height == 0 ? max_free_work : max_shallow_work;
  std::vector<Column> seeds;
  if (max_height == 0 && context_->known != nullptr) seeds = context_->known->seeds(*topology_, *orbits_, trees);
  if (seeds.empty()) {
    for (Column& column : columns_of(orbits_->graph, groups_, known)) {
      seeds.push_back(trees.column(column.group, std::move(column.edges)));
    }
  }
  limits.seeds = seeds;
  if (!seeds.empty()) limits.warm_rounds = std::min(limits.warm_rounds, seeded_warm_rounds);
  return generate_columns(trees.program(), trees, limits);
}

std::string_view TreeProgram::collective_name() const {
  const TreeGroup& group = groups_.groups.front();
  if (is_one_root_) return group.inward ? "reduce" : "broadcast";
  return group.inward ? "reduce_scatter" : "all_gather";
}

double TreeProgram::bytes_per_unit() const {
  std::int64_t shares = 0;
  for (const TreeGroup& group : groups_.groups) shares += group.copies;
  return orbits_->graph.unit.convert_to<double>() * static_cast<double>(shares);
}

std::vector<ColumnSolution> TreeProgram::with_few_trees(const ColumnSolution& solution,
                                                        std::span<const std::uint32_t> most) const {
  return pack_few_columns(oracle(0).program(), solution.found, most);
}

std::optional<ColumnSolution> TreeProgram::with_equal_trees(const ColumnSolution& solution, std::uint32_t count) const {
  const std::vector<ColumnSolution> few = with_few_trees(solution, std::span(&count, 1));
  if (few.empty()) return std::nullopt;
  std::vector<Column> columns;
  std::vector<std::vector<Rational>> shares(groups_.groups.size(), std::vector<Rational>(few.front().parts.size(), 0));
  for (const ColumnSolution::Part& part : few.front().parts) {
    shares[part.column.group][columns.size()] = part.amount / few.front().limit;
    columns.push_back(part.column);
  }
  std::vector<std::int64_t> times(columns.size(), 0);
  for (const std::vector<Rational>& of_group : shares) {
    std::ranges::transform(times, apportion(of_group, count), times.begin(), std::plus<>());
  }
  auto packing = pack_shares(oracle(0).program(), columns, times, count);
  if (!packing) return std::nullopt;
  return ColumnSolution{.limit = std::move(packing->reached), .attained = true, .parts = std::move(packing->parts)};
}

std::vector<Arborescence> TreeProgram::lift(const ColumnSolution& solution) const {
  Forest forest = planners::lift(*topology_, *orbits_, groups_, solution);
  return groups_.groups.front().inward ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

std::optional<ProgramRate> program_rate(const PlanningProblem& problem, Direction direction, Rank root,
                                        std::span<const std::int64_t> shares, const PlanContext& context) {
  const auto program = TreeProgram::make(problem, direction, root, Symmetry::any, shares, context);
  return program ? std::optional(program->optimum()) : std::nullopt;
}

}  // namespace espalier::planners
