#include "planners/bounds/all_reduce_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planners/bounds/aggregation_bound.h"
#include "planners/lp/all_reduce_program.h"

namespace espalier::planners {

namespace {

constexpr const char* past_size = "the network is past the size up to which the optimum is computed";

}  // namespace

Result<AllReduceBounds> all_reduce_bounds(const PlanningProblem& problem, const PlanContext& context) {
  const Topology& topology = problem.topology();
  const auto& floors = problem.floors();
  if (!floors) return tl::unexpected(floors.error());
  AllReduceBounds bounds{floors->best(), *floors, false, {}, nullptr};
  if (topology.rank_count() == 1) {
    bounds.optimal_in_class = true;
    return bounds;
  }
  if (computes_in_network(topology)) {
    bounds.best = as_floor(std::move(bounds.best), "switches that copy or add may or may not reach it");
    return bounds;
  }
  const bool all_relay = topology.first_not_relaying().is_none();  // else its rank is no root
  if (all_relay && bounds.best.time_per_byte == bounds.floors.reduce_scatter_all_gather && trees_reach_cuts(problem)) {
    bounds.optimal_in_class = true;
    return bounds;
  }
  bounds.program = context.solution ? context.solution : solve_all_reduce(problem, context);
  const auto& optimum = bounds.program;
  if (!optimum) {
    bounds.best = as_floor(std::move(bounds.best), past_size);
    return bounds;
  }
  bounds.optimal_in_class = optimum->solution.attained;
  if (optimum->time_per_byte > bounds.best.time_per_byte) {
    bounds.best = {optimum->time_per_byte, {}, "the best in-trees and out-trees of the same roots, by exact prices"};
    bounds.prices = price_shares(topology, *optimum->orbits, optimum->solution.prices);
  }
  if (!bounds.optimal_in_class) {
    const char* why = optimum->is_near ? past_size : "the optimum was not found within the limits";
    bounds.best = as_floor(std::move(bounds.best), why);
  }
  return bounds;
}

}  // namespace espalier::planners
