#include "planners/ring/ring_limit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "planners/cut_rate.h"
#include "topology/flow_network.h"

namespace espalier {

std::int64_t port_limit(const Topology& topology, const RankGroups& groups) {
  const auto sum = [&](std::span<const LinkId> links) {
    return std::accumulate(links.begin(), links.end(), std::int64_t{0}, [&](std::int64_t total, LinkId id) {
      return total + topology.link(id).bandwidth().bytes_per_second;
    });
  };
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    least = std::min({least, sum(topology.out_links(node)), sum(topology.in_links(node))});
  }
  if (!groups.two_levels()) return least;
  std::unordered_map<std::string, std::int64_t> leaving;
  for (const Link& link : topology.links()) {
    const std::string& host = topology.node(link.tail).host;
    if (!host.empty() && topology.node(link.head).host != host) leaving[host] += link.bandwidth().bytes_per_second;
  }
  for (const auto& [host, rate] : leaving) least = std::min(least, rate);
  return least;
}

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

}  // namespace espalier
