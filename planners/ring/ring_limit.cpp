#include "planners/ring/ring_limit.h"

#include <algorithm>

#include "planners/bounds/cut_bound.h"

namespace espalier::planners {

Rational ring_limit(const PlanningProblem& problem) {
  const Topology& topology = problem.topology();
  const auto smallest_cut = [&](CollectiveKind kind) {
    const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
    return Rational(BigInteger(problem.tightest_cut({kind, ranks, Rank(0)}).capacity) *
                    problem.flow_network(cut_direction(kind)).capacity_unit());
  };
  // A set that separates ranks has rank 0 inside and is left, or has it outside and is entered.
  Rational limit = std::min(smallest_cut(CollectiveKind::broadcast), smallest_cut(CollectiveKind::reduce));
  for (const Node& node : topology.nodes()) {
    if (!node.is_rank || node.bandwidth.bytes_per_second == 0) continue;
    limit = std::min(limit, make_rational(node.bandwidth.bytes_per_second, 2));
  }
  return limit;
}

}  // namespace espalier::planners
