#include "schedule/ecmp.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "topology/link_kind.h"

namespace espalier {
namespace {

/// The part of a route that switches choose: its links from `first` on, up to `end`.
struct Hashed {
  std::size_t first = 0;
  std::size_t end = 0;
};

/// The links that a switch may forward to on its way to another, by switch.
using NextLinks = std::vector<std::vector<LinkId>>;

class FlowHasher {
 public:
  explicit FlowHasher(const Topology& topology) : topology_(topology) {
    for (std::size_t i = 0; i < topology.link_count(); ++i) {
      const Link& link = topology.link(LinkId(i));
      joins_switches_.push_back(is_switch(link.tail) && is_switch(link.head) &&
                                kind_of(topology, LinkId(i)) == LinkKind::network);
    }
  }

  /// The longest run of links between switches of the network; nothing where there is none.
  [[nodiscard]] std::optional<Hashed> hashed_part(const Route& route) const {
    const auto joins = [&](LinkId link) { return joins_switches_[link.index()]; };
    const auto first = std::ranges::find_if(route.links, joins);
    if (first == route.links.end()) return std::nullopt;
    const auto end = std::find_if_not(first, route.links.end(), joins);
    return Hashed{static_cast<std::size_t>(first - route.links.begin()),
                  static_cast<std::size_t>(end - route.links.begin())};
  }

  /// Whether a switch on the way has more than one link to forward to.
  bool has_choice(const Route& route) {
    const auto part = hashed_part(route);
    if (!part) return false;
    const NextLinks& next = next_links(last_of(route, *part));
    std::vector<NodeId> open{topology_.link(route.links[part->first]).tail};
    while (!open.empty()) {
      const std::vector<LinkId>& links = next[open.back().index()];
      open.pop_back();
      if (links.size() > 1) return true;
      for (const LinkId link : links) open.push_back(topology_.link(link).head);
    }
    return false;
  }

  std::vector<LinkId> draw(const Route& route, ChannelId channel, std::uint64_t seed) {
    const auto part = hashed_part(route);
    if (!part) return {route.links.begin(), route.links.end()};
    std::vector<LinkId> links(route.links.begin(), route.links.begin() + static_cast<std::ptrdiff_t>(part->first));
    const NodeId last = last_of(route, *part);
    const NextLinks& next = next_links(last);
    Random flow(seed);
    for (const std::uint64_t field :
         {std::uint64_t{route.src.value()}, std::uint64_t{route.dst.value()}, std::uint64_t{channel.value()}}) {
      flow = Random(flow.next() ^ field);
    }
    const std::uint64_t key = flow.next();
    for (NodeId node = topology_.link(route.links[part->first]).tail; node != last;) {
      const std::vector<LinkId>& choices = next[node.index()];
      links.push_back(choices[Random(key ^ node.value()).below(choices.size())]);
      node = topology_.link(links.back()).head;
    }
    links.insert(links.end(), route.links.begin() + static_cast<std::ptrdiff_t>(part->end), route.links.end());
    return links;
  }

 private:
  [[nodiscard]] bool is_switch(NodeId node) const { return topology_.node(node).kind == NodeKind::switch_node; }

  [[nodiscard]] NodeId last_of(const Route& route, const Hashed& part) const {
    return topology_.link(route.links[part.end - 1]).head;
  }

  const NextLinks& next_links(NodeId last) {
    const auto [known, is_new] = next_.try_emplace(last);
    if (!is_new) return known->second;
    constexpr auto unseen = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> distance(topology_.node_count(), unseen);
    distance[last.index()] = 0;
    std::vector<NodeId> order{last};
    for (std::size_t i = 0; i < order.size(); ++i) {
      for (const LinkId link : topology_.in_links(order[i])) {
        const NodeId tail = topology_.link(link).tail;
        if (!joins_switches_[link.index()] || distance[tail.index()] != unseen) continue;
        distance[tail.index()] = distance[order[i].index()] + 1;
        order.push_back(tail);
      }
    }
    NextLinks& next = known->second;
    next.resize(topology_.node_count());
    for (const NodeId node : order) {
      std::vector<LinkId>& links = next[node.index()];
      Bandwidth fastest;
      for (const LinkId link : topology_.out_links(node)) {
        const NodeId head = topology_.link(link).head;
        if (!joins_switches_[link.index()] || distance[head.index()] == unseen) continue;
        if (distance[head.index()] + 1 != distance[node.index()]) continue;
        links.push_back(link);
        fastest = std::max(fastest, topology_.link(link).bandwidth());
      }
      std::erase_if(links, [&](LinkId link) { return topology_.link(link).bandwidth() < fastest; });
    }
    return next;
  }

  const Topology& topology_;
  std::vector<bool> joins_switches_;  ///< By link.
  std::map<NodeId, NextLinks> next_;  ///< By last switch.
};

bool is_between_ranks(const Schedule& schedule, const Route& route) {
  return std::max(route.src, route.dst).index() < schedule.collective.rank_count;
}

}  // namespace

Schedule hash_flows(const Schedule& schedule, const Topology& topology, std::uint64_t seed) {
  Schedule hashed(schedule.header());
  hashed.transfers = schedule.transfers;
  FlowHasher hasher(topology);
  std::map<std::pair<RouteId, std::uint32_t>, RouteId> known;
  for (Transfer& transfer : hashed.transfers) {
    const RouteId before = transfer.route;
    const auto [place, is_new] = known.try_emplace({before, transfer.channel().value()});
    if (is_new) {
      const Route route = schedule.route(before);
      place->second = is_between_ranks(schedule, route)
                          ? hashed.add_route(route.src, route.dst, hasher.draw(route, transfer.channel(), seed))
                          : hashed.add_route(route.src, route.dst, route.links);
    }
    transfer.route = place->second;
  }
  return hashed;
}

bool has_equal_paths(const Schedule& schedule, const Topology& topology) {
  FlowHasher hasher(topology);
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    if (is_between_ranks(schedule, route) && hasher.has_choice(route)) return true;
  }
  return false;
}

}  // namespace espalier
