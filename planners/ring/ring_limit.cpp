#include "planners/ring/ring_limit.h"

#include <algorithm>

#include "planners/bounds/cut_rate.h"
#include "topology/analysis/flow_network.h"

namespace espalier::planners {

Rational ring_limit(const Topology& topology) {
  const auto smallest_cut = [&](Direction direction) {
    const FlowNetwork network(topology, direction);
    return Rational(BigInteger(broadcast_cut(network, Rank(0)).capacity) * network.capacity_unit());
  };
  // A set that separates ranks has rank 0 inside and is left, or has it outside and is entered.
  Rational limit = std::min(smallest_cut(Direction::forward), smallest_cut(Direction::reversed));
  for (const Node& node : topology.nodes()) {
    if (!node.is_rank || node.bandwidth.bytes_per_second == 0) continue;
    limit = std::min(limit, make_rational(node.bandwidth.bytes_per_second, 2));
  }
  return limit;
}

}  // namespace espalier::planners
