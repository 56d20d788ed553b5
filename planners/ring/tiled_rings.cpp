#include "planners/ring/tiled_rings.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

/// In which order a ring passes the ranks of each machine of a pair, by their places in the machine.
using Passages = std::array<std::vector<std::size_t>, 2>;

/// Nothing when the ring changes machines more than twice.
std::optional<Passages> passages_of(const RankGroups& groups, const std::vector<Rank>& order) {
  const auto machine = [&](std::size_t i) { return groups.group_of[order[i % order.size()].index()]; };
  std::size_t begin = order.size();
  std::size_t entries = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (machine(i + order.size() - 1) == 0 || machine(i) != 0) continue;
    begin = i;
    ++entries;
  }
  if (entries != 1) return std::nullopt;
  Passages passages;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Rank rank = order[(begin + i) % order.size()];
    const std::vector<Rank>& ranks = groups.groups[groups.group_of[rank.index()]];
    const auto place = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
    passages[groups.group_of[rank.index()]].push_back(static_cast<std::size_t>(place));
  }
  return passages;
}

/// The ring over all machines, taken from the residual; nothing where a hop has no room.
std::optional<Ring> draw_out(Residual& residual, const RankGroups& groups, const Passages& passages,
                             std::int64_t rate) {
  Ring ring;
  ring.rate = rate;
  for (std::size_t machine = 0; machine < groups.groups.size(); ++machine) {
    for (const std::size_t place : passages[machine % 2]) ring.order.push_back(groups.groups[machine][place]);
  }
  std::rotate(ring.order.begin(), std::find(ring.order.begin(), ring.order.end(), Rank(0)), ring.order.end());
  for (std::size_t i = 0; i < ring.order.size(); ++i) {
    std::optional<Path> hop = residual.find_route(ring.order[i], ring.order[(i + 1) % ring.order.size()], rate);
    if (!hop) {
      for (const Path& taken : ring.hops) residual.give_back(taken, rate);
      return std::nullopt;
    }
    residual.take(*hop, rate);
    ring.hops.push_back(*std::move(hop));
  }
  return ring;
}

}  // namespace

MachinePair first_pair(const Topology& topology, const RankGroups& groups) {
  std::vector<NodeId> place(topology.node_count());
  std::vector<Node> nodes;
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Rank rank = topology.rank_of(NodeId(i));
    if (!rank.is_none() && groups.group_of[rank.index()] > 1) continue;
    if (!rank.is_none()) ranks.push_back(rank);
    place[i] = NodeId(nodes.size());
    nodes.push_back(topology.node(NodeId(i)));
  }
  std::vector<Link> links;
  for (Link link : topology.links()) {
    link.tail = place[link.tail.index()];
    link.head = place[link.head.index()];
    if (!link.tail.is_none() && !link.head.is_none()) links.push_back(std::move(link));
  }
  Result<Topology> pair = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(pair.has_value(), "a topology stays one when ranks are taken out of it");
  return {std::move(*pair), std::move(ranks)};
}

std::vector<Ring> tile_rings(const Topology& topology, const RankGroups& groups, const MachinePair& pair,
                             const RingSet& pair_rings) {
  Residual residual(topology);
  std::vector<Ring> rings;
  for (const Ring& ring : pair_rings.rings) {
    std::vector<Rank> order;
    for (const Rank rank : ring.order) order.push_back(pair.ranks[rank.index()]);
    const std::optional<Passages> passages = passages_of(groups, order);
    const std::int64_t rate = ring.rate / pair_rings.period;
    if (!passages || rate == 0) continue;
    if (auto drawn = draw_out(residual, groups, *passages, rate)) rings.push_back(*std::move(drawn));
  }
  return rings;
}

}  // namespace espalier::planners
