#include "topology/analysis/analysis.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/format_units.h"
#include "topology/analysis/flow_network.h"
#include "topology/analysis/max_flow.h"

namespace espalier {

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Bandwidth saturated(__int128 rate) { return {static_cast<std::int64_t>(std::min<__int128>(rate, largest))}; }

/// The member of `groups` that `key` stands for, added at its first appearance.
template <class Key, class Group>
Group& group_for(std::map<Key, std::size_t>& index, std::vector<Group>& groups, const Key& key) {
  const auto [place, is_new] = index.emplace(key, groups.size());
  if (is_new) groups.emplace_back();
  return groups[place->second];
}

}  // namespace

std::vector<NodeGroup> group_nodes(const Topology& topology) {
  std::map<std::pair<NodeKind, bool>, std::size_t> index;
  std::vector<NodeGroup> groups;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(NodeId(i));
    NodeGroup& group = group_for(index, groups, {node.kind, node.is_rank});
    group.kind = node.kind;
    group.are_ranks = node.is_rank;
    group.nodes.emplace_back(i);
  }
  return groups;
}

std::vector<LinkGroup> group_links(const Topology& topology) {
  using Key = std::tuple<LinkValues, NodeKind, NodeKind>;
  std::map<Key, std::size_t> index;
  std::vector<LinkGroup> groups;
  for (const Link& link : topology.links()) {
    const auto [low, high] = std::minmax(topology.node(link.tail).kind, topology.node(link.head).kind);
    LinkGroup& group = group_for(index, groups, Key{link.values(), low, high});
    group = {link.values(), low, high, group.count + 1};
  }
  return groups;
}

std::vector<EgressGroup> group_egress(const Topology& topology) {
  using Links = std::map<std::string, std::size_t>;
  std::map<std::tuple<NodeKind, Links, Bandwidth>, std::size_t> index;
  std::vector<EgressGroup> groups;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const NodeKind kind = topology.node(NodeId(i)).kind;
    Links links;
    __int128 total = 0;
    for (const LinkId id : topology.out_links(NodeId(i))) {
      const Link& link = topology.link(id);
      ++links[link.link_class.empty() ? "of " + format_bandwidth(link.bandwidth()) : link.link_class];
      total += link.bandwidth().bytes_per_second;
    }
    EgressGroup& group = group_for(index, groups, {kind, links, saturated(total)});
    group.kind = kind;
    group.links = std::move(links);
    group.total = saturated(total);
    group.nodes.emplace_back(i);
  }
  return groups;
}

namespace {

/// Distances in links from one rank, over nodes that only forward.
std::vector<std::size_t> hops_from(const Topology& topology, NodeId start) {
  std::vector<std::size_t> hops(topology.node_count(), 0);
  std::vector<NodeId> queue{start};
  for (std::size_t done = 0; done < queue.size(); ++done) {
    const NodeId node = queue[done];
    if (node != start && topology.node(node).is_rank) continue;
    for (const LinkId id : topology.out_links(node)) {
      const NodeId next = topology.link(id).head;
      if (next == start || hops[next.index()] != 0) continue;
      hops[next.index()] = hops[node.index()] + 1;
      queue.push_back(next);
    }
  }
  return hops;
}

/// What the links on shortest ways from `start` to `end` carry together.
Bandwidth shortest_way_flow(const Topology& topology, const std::vector<std::size_t>& hops, NodeId start, NodeId end) {
  std::map<NodeId, std::uint32_t> vertex{{end, 0}};
  std::vector<NodeId> queue{end};
  std::vector<LinkId> links;
  for (std::size_t done = 0; done < queue.size(); ++done) {
    for (const LinkId id : topology.in_links(queue[done])) {
      const NodeId before = topology.link(id).tail;
      const bool forwards = before == start || (!topology.node(before).is_rank && hops[before.index()] != 0);
      if (!forwards || hops[before.index()] + 1 != hops[queue[done].index()]) continue;
      links.push_back(id);
      if (vertex.emplace(before, static_cast<std::uint32_t>(queue.size())).second) queue.push_back(before);
    }
  }
  // Node v is entered at vertex 2v and left at 2v + 1; its backplane lies between.
  MaxFlow<__int128> flow(2 * queue.size());
  for (std::uint32_t v = 0; v < queue.size(); ++v) {
    const std::int64_t backplane = topology.node(queue[v]).bandwidth.bytes_per_second;
    flow.add_arc(2 * v, 2 * v + 1, backplane == 0 ? __int128{largest} << 32U : backplane);
  }
  for (const LinkId id : links) {
    const Link& link = topology.link(id);
    flow.add_arc(2 * vertex[link.tail] + 1, 2 * vertex[link.head], link.bandwidth().bytes_per_second);
  }
  return saturated(flow.run(2 * vertex[start], 1));
}

}  // namespace

std::vector<Connection> connections_from(const Topology& topology, Rank src) {
  const NodeId start = topology.node_of(src);
  const std::vector<std::size_t> hops = hops_from(topology, start);
  std::vector<Connection> connections(topology.rank_count());
  for (std::size_t i = 0; i < connections.size(); ++i) {
    const NodeId end = topology.node_of(Rank(i));
    if (hops[end.index()] == 0) continue;
    const std::size_t direct = hops[end.index()] == 1 ? topology.links_between(start, end).size() : 0;
    connections[i] = {hops[end.index()], direct, shortest_way_flow(topology, hops, start, end)};
  }
  return connections;
}

std::vector<std::vector<Bandwidth>> group_to_group(const Topology& topology,
                                                   const std::vector<std::size_t>& group_of_rank, std::size_t groups) {
  const FlowNetwork network(topology, Direction::forward);
  std::vector<std::vector<std::uint32_t>> senders(groups), receivers(groups);
  for (std::size_t i = 0; i < group_of_rank.size(); ++i) {
    senders[group_of_rank[i]].push_back(network.source_of(Rank(i)));
    receivers[group_of_rank[i]].push_back(network.vertex_of(Rank(i)));
  }
  MaxFlow<__int128> flow(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) flow.add_arc(arc.tail, arc.head, arc.capacity);
  std::vector<std::vector<Bandwidth>> rates(groups, std::vector<Bandwidth>(groups));
  for (std::size_t from = 0; from < groups; ++from) {
    for (std::size_t to = 0; to < groups; ++to) {
      if (from == to || senders[from].empty() || receivers[to].empty()) continue;
      for (std::uint32_t i = 0; i < network.arcs().size(); ++i) {
        const FlowArc& arc = network.arcs()[i];
        const Rank rank = network.rank_at(arc.tail);
        const bool third = !rank.is_none() && group_of_rank[rank.index()] != from && group_of_rank[rank.index()] != to;
        flow.set_capacity(i, third ? 0 : arc.capacity);
      }
      rates[from][to] = saturated(flow.run(senders[from], receivers[to]) * network.capacity_unit());
    }
  }
  return rates;
}

}  // namespace espalier
