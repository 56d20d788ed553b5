#include "planners/bounds/aggregation_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "planners/planning_problem.h"
#include "topology/analysis/flow_network.h"
#include "topology/analysis/max_flow.h"

namespace espalier::planners {
namespace {

constexpr std::uint32_t no_domain = UINT32_MAX;

bool computes(const Node& node) { return node.multicast || node.reduction; }

/// The domain of every node, numbered from 0; none for nodes that only forward.
struct Domains {
  std::vector<std::uint32_t> of_node;
  std::uint32_t count = 0;
  bool all_have_ranks = true;
};

Domains find_domains(const Topology& topology) {
  Domains domains{std::vector<std::uint32_t>(topology.node_count(), no_domain)};
  const auto belongs = [&](NodeId node) { return topology.node(node).is_rank || computes(topology.node(node)); };
  std::vector<NodeId> pending;
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    if (!belongs(NodeId(v)) || domains.of_node[v] != no_domain) continue;
    bool has_rank = false;
    const auto take = [&](NodeId node) {
      domains.of_node[node.index()] = domains.count;
      pending.push_back(node);
    };
    take(NodeId(v));
    while (!pending.empty()) {
      const NodeId at = pending.back();
      pending.pop_back();
      has_rank = has_rank || topology.node(at).is_rank;
      const auto visit = [&](NodeId next) {
        const bool joined = computes(topology.node(at)) || computes(topology.node(next));
        if (joined && belongs(next) && domains.of_node[next.index()] == no_domain) take(next);
      };
      for (const LinkId link : topology.out_links(at)) visit(topology.link(link).head);
      for (const LinkId link : topology.in_links(at)) visit(topology.link(link).tail);
    }
    domains.all_have_ranks = domains.all_have_ranks && has_rank;
    ++domains.count;
  }
  return domains;
}

/// The sum over domains of the least capacity between the domain and all others, in bytes per second.
BigInteger capacity_leaving_domains(const Topology& topology, const Domains& domains, const FlowNetwork& network) {
  MaxFlow<__int128> flow(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) flow.add_arc(arc.tail, arc.head, arc.capacity);
  BigInteger sum = 0;
  for (std::uint32_t domain = 0; domain < domains.count; ++domain) {
    std::vector<std::uint32_t> own;
    std::vector<std::uint32_t> others;
    for (std::uint32_t v = 0; v < domains.of_node.size(); ++v) {
      if (domains.of_node[v] == no_domain) continue;
      const Rank rank = topology.rank_of(NodeId(v));
      const bool is_own = domains.of_node[v] == domain;
      (is_own ? own : others).push_back(is_own && !rank.is_none() ? network.source_of(rank) : v);
    }
    sum += BigInteger(flow.run(own, others)) * network.capacity_unit();
  }
  return sum;
}

}  // namespace

bool computes_in_network(const Topology& topology) { return std::ranges::any_of(topology.nodes(), computes); }

std::optional<Bound> domain_message_bound(const PlanningProblem& problem) {
  const Topology& topology = problem.topology();
  const Domains domains = find_domains(topology);
  if (domains.count < 2 || !domains.all_have_ranks) return std::nullopt;
  const BigInteger leaving = capacity_leaving_domains(topology, domains, problem.flow_network(Direction::forward));
  const BigInteger entering = capacity_leaving_domains(topology, domains, problem.flow_network(Direction::reversed));
  std::vector<NodeId> nodes;
  for (std::size_t v = 0; v < domains.of_node.size(); ++v) {
    if (domains.of_node[v] != no_domain) nodes.emplace_back(v);
  }
  const std::uint32_t messages = 2 * (domains.count - 1);
  const bool by_entering = entering < leaving;
  return Bound{Rational(BigInteger(messages), by_entering ? entering : leaving), std::move(nodes),
               fmt::format("{} S bytes have to {} the {} groups of ranks that switches join, counted one by one",
                           messages, by_entering ? "enter" : "leave", domains.count)};
}

}  // namespace espalier::planners
