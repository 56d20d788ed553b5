#include "schedule/ecmp.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "schedule/loads.h"
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
    Random flow(seed);
    for (const std::uint64_t field :
         {std::uint64_t{route.src.value()}, std::uint64_t{route.dst.value()}, std::uint64_t{channel.value()}}) {
      flow = Random(flow.next() ^ field);
    }
    const std::uint64_t key = flow.next();
    return reroute(route, [&](NodeId node, const NextLinks& next) {
      const std::vector<LinkId>& choices = next[node.index()];
      return choices[Random(key ^ node.value()).below(choices.size())];
    });
  }

  /// The way on which `price` of the links has the least sum; of equal ones the first.
  template <class Price>
  std::vector<LinkId> cheapest(const Route& route, Price price) {
    std::map<NodeId, std::pair<double, LinkId>> best;  // By switch: what the rest of the way costs, and its first link.
    const auto find = [&](auto self, NodeId node, const NextLinks& next) -> std::pair<double, LinkId> {
      if (const auto known = best.find(node); known != best.end()) return known->second;
      std::pair<double, LinkId> least{0, LinkId()};
      for (const LinkId link : next[node.index()]) {
        const double cost = price(link) + self(self, topology_.link(link).head, next).first;
        if (least.second.is_none() || cost < least.first) least = {cost, link};
      }
      return best[node] = least;
    };
    return reroute(route, [&](NodeId node, const NextLinks& next) { return find(find, node, next).second; });
  }

 private:
  /// The route with the part that switches choose walked anew: `choose` gives the next link at a switch.
  template <class Choose>
  std::vector<LinkId> reroute(const Route& route, Choose choose) {
    const auto part = hashed_part(route);
    if (!part) return {route.links.begin(), route.links.end()};
    std::vector<LinkId> links(route.links.begin(), route.links.begin() + static_cast<std::ptrdiff_t>(part->first));
    const NodeId last = last_of(route, *part);
    const NextLinks& next = next_links(last);
    for (NodeId node = topology_.link(route.links[part->first]).tail; node != last;) {
      links.push_back(choose(node, next));
      node = topology_.link(links.back()).head;
    }
    links.insert(links.end(), route.links.begin() + static_cast<std::ptrdiff_t>(part->end), route.links.end());
    return links;
  }

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

/// What a planner sends from rank to rank over one route on one channel.
using FlowKey = std::pair<RouteId, std::uint32_t>;

/// The schedule with the links that `links_of` gives for each flow between ranks.
template <class LinksOf>
Schedule with_routes(const Schedule& schedule, LinksOf links_of) {
  Schedule moved(schedule.header());
  moved.transfers = schedule.transfers;
  std::map<FlowKey, RouteId> known;
  for (Transfer& transfer : moved.transfers) {
    const FlowKey flow{transfer.route, transfer.channel().value()};
    const auto [place, is_new] = known.try_emplace(flow);
    if (is_new) {
      const Route route = schedule.route(transfer.route);
      if (is_between_ranks(schedule, route)) {
        place->second = moved.add_route(route.src, route.dst, links_of(flow, route));
      } else {
        place->second = moved.add_route(route.src, route.dst, route.links);
      }
    }
    transfer.route = place->second;
  }
  return moved;
}

/// The units of every flow, the most first.
std::vector<std::pair<FlowKey, double>> flows_by_size(const Schedule& schedule) {
  std::map<FlowKey, double> units;
  for (const Transfer& transfer : schedule.transfers) {
    double& sum = units[{transfer.route, transfer.channel().value()}];
    for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
      sum += static_cast<double>(schedule.slices[transfer.first_slice.index() + i].length);
    }
  }
  std::vector<std::pair<FlowKey, double>> flows(units.begin(), units.end());
  std::ranges::stable_sort(flows, std::ranges::greater{}, [](const auto& flow) { return flow.second; });
  return flows;
}

}  // namespace

Schedule hash_flows(const Schedule& schedule, const Topology& topology, std::uint64_t seed) {
  FlowHasher hasher(topology);
  return with_routes(schedule, [&](const FlowKey& flow, const Route& route) {
    return hasher.draw(route, ChannelId(flow.second), seed);
  });
}

Schedule spread_flows(Schedule schedule, const Topology& topology) {
  if (!has_equal_paths(schedule, topology)) return schedule;
  FlowHasher hasher(topology);
  std::vector<double> busy(topology.link_count(), 0);  // By link, in units over bytes per second.
  std::map<FlowKey, std::vector<LinkId>> placed;
  for (const auto& [flow, units] : flows_by_size(schedule)) {
    const Route route = schedule.route(flow.first);
    const auto time_of = [&, units = units](LinkId link) {
      return units / static_cast<double>(topology.link(link).bandwidth().bytes_per_second);
    };
    std::vector<LinkId>& links = placed[flow];
    links.assign(route.links.begin(), route.links.end());
    if (is_between_ranks(schedule, route)) {
      // What the flow adds to the sum of squares.
      links = hasher.cheapest(route, [&](LinkId link) {
        const double time = time_of(link);
        return (2 * busy[link.index()] + time) * time;
      });
    }
    for (const LinkId link : links) busy[link.index()] += time_of(link);
  }
  Schedule spread =
      with_routes(schedule, [&](const FlowKey& flow, const Route& /*route*/) { return std::move(placed.at(flow)); });
  const bool is_better =
      compute_loads(spread, topology).time_per_byte < compute_loads(schedule, topology).time_per_byte;
  return is_better ? std::move(spread) : std::move(schedule);
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
