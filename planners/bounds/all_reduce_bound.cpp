#include "planners/bounds/all_reduce_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planners/bounds/aggregation_bound.h"
#include "planners/lp/all_reduce_program.h"

namespace espalier::planners {

namespace {

/// Whether trees that reach the cut bounds of reduce_scatter and all_gather are known to exist: no backplanes, and as
/// much bandwidth into every forwarding node as out of it (docs/bounds.md).
bool packings_reach_cuts(const Topology& topology) {
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const NodeId id(v);
    if (topology.node(id).bandwidth.bytes_per_second > 0) return false;
    if (topology.node(id).is_rank) continue;
    BigInteger surplus = 0;
    for (const LinkId link : topology.in_links(id)) surplus += topology.link(link).bandwidth().bytes_per_second;
    for (const LinkId link : topology.out_links(id)) surplus -= topology.link(link).bandwidth().bytes_per_second;
    if (surplus != 0) return false;
  }
  return true;
}

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
    bounds.best.what += " (a floor: switches that copy or add may or may not reach it)";
    return bounds;
  }
  const bool all_relay = topology.first_not_relaying().is_none();  // else its rank is no root
  if (all_relay && bounds.best.time_per_byte == bounds.floors.reduce_scatter_all_gather &&
      packings_reach_cuts(topology)) {
    bounds.optimal_in_class = true;
    return bounds;
  }
  bounds.program = context.solution ? context.solution : solve_all_reduce(problem, context);
  const auto& optimum = bounds.program;
  if (!optimum) {
    bounds.best.what += " (a floor: the network is past the size up to which the optimum is computed)";
    return bounds;
  }
  bounds.optimal_in_class = optimum->solution.attained;
  if (optimum->time_per_byte > bounds.best.time_per_byte) {
    bounds.best = {optimum->time_per_byte,
                   {},
                   bounds.optimal_in_class ? "the best in-trees and out-trees of the same roots, by exact prices"
                                           : "any in-trees and out-trees of the same roots, by prices (a floor: the "
                                             "optimum was not found within the limits)"};
    bounds.prices = price_shares(topology, *optimum->orbits, optimum->solution.prices);
  } else if (!bounds.optimal_in_class) {
    bounds.best.what += " (a floor: the optimum was not found within the limits)";
  }
  return bounds;
}

}  // namespace espalier::planners
