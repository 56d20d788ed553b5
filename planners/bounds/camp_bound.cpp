#include "planners/bounds/camp_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "topology/analysis/flow_network.h"
#include "topology/analysis/max_flow.h"

namespace espalier {
namespace {

constexpr std::uint32_t no_camp = UINT32_MAX;

bool computes(const Node& node) { return node.multicast || node.reduction; }

/// The camp of every node, numbered from 0; none for nodes that only forward.
struct Camps {
  std::vector<std::uint32_t> of_node;
  std::uint32_t count = 0;
  bool all_have_ranks = true;
};

Camps find_camps(const Topology& topology) {
  Camps camps{std::vector<std::uint32_t>(topology.node_count(), no_camp)};
  const auto belongs = [&](NodeId node) { return topology.node(node).is_rank || computes(topology.node(node)); };
  std::vector<NodeId> pending;
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    if (!belongs(NodeId(v)) || camps.of_node[v] != no_camp) continue;
    bool has_rank = false;
    const auto take = [&](NodeId node) {
      camps.of_node[node.index()] = camps.count;
      pending.push_back(node);
    };
    take(NodeId(v));
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      has_rank = has_rank || topology.node(at).is_rank;
      const auto visit = [&](NodeId next) {
        const bool joined = computes(topology.node(at)) || computes(topology.node(next));
        if (joined && belongs(next) && camps.of_node[next.index()] == no_camp) take(next);
      };
      for (const LinkId link : topology.out_links(at)) visit(topology.link(link).head);
      for (const LinkId link : topology.in_links(at)) visit(topology.link(link).tail);
    }
    camps.all_have_ranks = camps.all_have_ranks && has_rank;
    ++camps.count;
  }
  return camps;
}

/// The sum over camps of the least capacity between the camp and all others, in bytes per second.
BigInteger capacity_leaving_camps(const Topology& topology, const Camps& camps, Direction direction) {
  const FlowNetwork network(topology, direction);
  MaxFlow<__int128> flow(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) flow.add_arc(arc.tail, arc.head, arc.capacity);
  BigInteger sum = 0;
  for (std::uint32_t camp = 0; camp < camps.count; ++camp) {
    std::vector<std::uint32_t> own;
    std::vector<std::uint32_t> others;
    for (std::uint32_t v = 0; v < camps.of_node.size(); ++v) {
      if (camps.of_node[v] == no_camp) continue;
      const Rank rank = topology.rank_of(NodeId(v));
      const bool is_own = camps.of_node[v] == camp;
      (is_own ? own : others).push_back(is_own && !rank.is_none() ? network.source_of(rank) : v);
    }
    sum += BigInteger(flow.run(own, others)) * network.capacity_unit();
  }
  return sum;
}

}  // namespace

bool computes_in_network(const Topology& topology) { return std::ranges::any_of(topology.nodes(), computes); }

std::optional<Bound> camp_message_bound(const Topology& topology) {
  const Camps camps = find_camps(topology);
  if (camps.count < 2 || !camps.all_have_ranks) return std::nullopt;
  const BigInteger leaving = capacity_leaving_camps(topology, camps, Direction::forward);
  const BigInteger entering = capacity_leaving_camps(topology, camps, Direction::reversed);
  std::vector<NodeId> nodes;
  for (std::size_t v = 0; v < camps.of_node.size(); ++v) {
    if (camps.of_node[v] != no_camp) nodes.emplace_back(v);
  }
  const std::uint32_t messages = 2 * (camps.count - 1);
  const bool by_entering = entering < leaving;
  return Bound{Rational(BigInteger(messages), by_entering ? entering : leaving), std::move(nodes),
               fmt::format("{} S bytes have to {} the {} groups of ranks that switches join, counted one by one",
                           messages, by_entering ? "enter" : "leave", camps.count)};
}

}  // namespace espalier
