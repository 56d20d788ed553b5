#include "planners/graph/rank_groups.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/disjoint_sets.h"
#include "topology/link_kind.h"

namespace espalier::planners {

namespace {

constexpr std::size_t max_ordered_groups = 1024;

/// The ranks by the set of nodes that they are in, sets in the order of their first ranks.
std::vector<std::vector<Rank>> joined_ranks(const Topology& topology, DisjointSets& joined) {
  std::vector<std::vector<Rank>> groups;
  std::unordered_map<std::uint32_t, std::size_t> group_of_set;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const std::uint32_t set = joined.find(topology.node_of(Rank(i)).value());
    const auto [at, is_new] = group_of_set.emplace(set, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].emplace_back(i);
  }
  return groups;
}

/// What the rates tell where no node says which machine it sits in: ranks that fast links join are one machine when all
/// machines are alike and the links between them have at most half the rate; where that is so at several rates, where
/// they fall off most. One group where it is nowhere so.
std::vector<std::vector<Rank>> groups_by_rate(const Topology& topology) {
  constexpr double min_fall = 2;
  const auto rate = [&](LinkId id) { return topology.link(id).bandwidth().bytes_per_second; };
  std::vector<LinkId> fastest_first;
  for (std::size_t i = 0; i < topology.link_count(); ++i) fastest_first.emplace_back(i);
  std::ranges::stable_sort(fastest_first, std::greater<>(), rate);
  DisjointSets joined(topology.node_count());
  std::vector<std::vector<Rank>> best;
  double best_fall = 0;
  for (std::size_t i = 0; i + 1 < fastest_first.size(); ++i) {
    const Link& link = topology.link(fastest_first[i]);
    joined.join(link.tail.value(), link.head.value());
    const double fall = static_cast<double>(rate(fastest_first[i])) / static_cast<double>(rate(fastest_first[i + 1]));
    if (fall < min_fall || fall < best_fall) continue;
    std::vector<std::vector<Rank>> groups = joined_ranks(topology, joined);
    const std::size_t size = groups.front().size();
    const auto alike = [&](const std::vector<Rank>& group) { return group.size() == size; };
    if (groups.size() == 1 || size == 1 || !std::ranges::all_of(groups, alike)) continue;
    best = std::move(groups);
    best_fall = fall;
  }
  if (!best.empty()) return best;
  best.emplace_back();
  for (std::size_t i = 0; i < topology.rank_count(); ++i) best.front().emplace_back(i);
  return best;
}

std::vector<std::vector<Rank>> groups_by_host(const Topology& topology) {
  const auto has_host = [&](const Node& node) { return node.is_rank && !node.host.empty(); };
  const bool any_host = std::any_of(topology.nodes().begin(), topology.nodes().end(), has_host);
  if (!any_host) return groups_by_rate(topology);
  std::vector<std::vector<Rank>> groups;
  std::unordered_map<std::string_view, std::size_t> group_of_host;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const std::string& host = topology.node(topology.node_of(Rank(i))).host;
    std::size_t group = groups.size();
    if (!host.empty()) group = group_of_host.emplace(host, groups.size()).first->second;
    if (group == groups.size()) groups.emplace_back();
    groups[group].emplace_back(i);
  }
  return groups;
}

/// The unvisited group with the nearest rank by links from any rank of `from`; of equally near ones the first.
std::size_t nearest_group(const Topology& topology, const std::vector<Rank>& from,
                          const std::vector<std::uint32_t>& group_of, const std::vector<bool>& visited) {
  constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::vector<bool> seen(topology.node_count(), false);
  std::vector<NodeId> level;
  for (const Rank rank : from) {
    level.push_back(topology.node_of(rank));
    seen[level.back().index()] = true;
  }
  std::size_t nearest = none;
  while (!level.empty() && nearest == none) {
    std::vector<NodeId> next;
    for (const NodeId node : level) {
      for (const LinkId id : topology.out_links(node)) {
        const NodeId head = topology.link(id).head;
        if (seen[head.index()]) continue;
        seen[head.index()] = true;
        next.push_back(head);
        const Rank rank = topology.rank_of(head);
        if (rank.is_none() || visited[group_of[rank.index()]]) continue;
        nearest = std::min<std::size_t>(nearest, group_of[rank.index()]);
      }
    }
    level = std::move(next);
  }
  if (nearest != none) return nearest;
  return static_cast<std::size_t>(std::find(visited.begin(), visited.end(), false) - visited.begin());
}

std::vector<std::uint32_t> index_of_group(const std::vector<std::vector<Rank>>& groups, std::size_t rank_count) {
  std::vector<std::uint32_t> group_of(rank_count);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const Rank rank : groups[group]) group_of[rank.index()] = static_cast<std::uint32_t>(group);
  }
  return group_of;
}

}  // namespace

RankGroups group_ranks(const Topology& topology) {
  std::vector<std::vector<Rank>> groups = groups_by_host(topology);
  std::vector<std::uint32_t> group_of = index_of_group(groups, topology.rank_count());
  if (groups.size() == 1 || groups.size() > max_ordered_groups) return {std::move(groups), std::move(group_of)};
  std::vector<std::vector<Rank>> ordered;
  std::vector<bool> visited(groups.size(), false);
  std::size_t group = 0;
  while (true) {
    visited[group] = true;
    ordered.push_back(groups[group]);
    if (ordered.size() == groups.size()) break;
    group = nearest_group(topology, groups[group], group_of, visited);
  }
  group_of = index_of_group(ordered, topology.rank_count());
  return {std::move(ordered), std::move(group_of)};
}

RankGroups group_domains(const Topology& topology) {
  RankGroups hosts = group_ranks(topology);
  if (hosts.groups.size() == 1) return hosts;
  DisjointSets joined(topology.node_count());
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    const Link& link = topology.link(LinkId(i));
    if (kind_of(topology, LinkId(i)) == LinkKind::fabric) joined.join(link.tail.value(), link.head.value());
  }
  for (const std::vector<Rank>& group : hosts.groups) {
    for (const Rank rank : group) {
      joined.join(topology.node_of(group.front()).value(), topology.node_of(rank).value());
    }
  }
  std::vector<std::vector<Rank>> domains = joined_ranks(topology, joined);
  if (domains.size() == hosts.groups.size()) return hosts;
  std::vector<std::uint32_t> group_of = index_of_group(domains, topology.rank_count());
  return {std::move(domains), std::move(group_of)};
}

std::vector<Rank> order_ranks(const RankGroups& groups) {
  std::vector<Rank> order;
  for (const std::vector<Rank>& group : groups.groups) order.insert(order.end(), group.begin(), group.end());
  return order;
}

}  // namespace espalier::planners
